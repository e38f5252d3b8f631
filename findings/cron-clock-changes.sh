#!/usr/bin/env bash
# robfig/cron, which times a CronJob of Kubernetes, a RayCronJob of KubeRay and the scaler `cron` of KEDA: the nights on which
# the clocks change.
#
# Software: github.com/robfig/cron/v3 v3.0.1; beside it croniter 7.0.0.
# A good guess: a time that does not exist in spring runs at the next one that does, as croniter and Vixie cron have it, and
# a day of the week may be 7 for Sunday.
# What happens, with a time zone: "30 2 * * *" does not run at all on the night without 02:30, and runs twice on the night
# that has it twice. croniter gives 03:00 in spring. "0 3 * * 7" and "0 3 * * 1-7" are errors.
# Why it matters: a job that puts a service to sleep at 02:30 leaves its GPUs on for a day, one that starts a batch does not
# start it, and in autumn both come twice. A schedule that was checked with croniter looks right.
set -euo pipefail
command -v go >/dev/null || { echo "needs go" >&2; exit 3; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH="$folder/go" GOCACHE="$folder/cache" GOFLAGS=-modcacherw
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check croniter==7.0.0 tzdata==2025.2

cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

func main() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	schedule, err := cron.ParseStandard("30 2 * * *")
	if err != nil {
		panic(err)
	}
	for _, day := range []time.Time{time.Date(2025, 3, 29, 12, 0, 0, 0, berlin), time.Date(2025, 10, 25, 12, 0, 0, 0, berlin)} {
		first := schedule.Next(day)
		second := schedule.Next(first)
		fmt.Println("robfig:", first.Format("01-02T15:04Z0700"), second.Format("01-02T15:04Z0700"))
	}
	for _, line := range []string{"0 3 * * 0", "0 3 * * 7", "0 3 * * 1-7"} {
		_, err := cron.ParseStandard(line)
		fmt.Printf("robfig: %s is accepted: %t\n", line, err == nil)
	}
}
GO
cat >times.py <<'PYTHON'
from datetime import datetime
from zoneinfo import ZoneInfo

from croniter import croniter

BERLIN = ZoneInfo("Europe/Berlin")
for day in (datetime(2025, 3, 29, 12, tzinfo=BERLIN), datetime(2025, 10, 25, 12, tzinfo=BERLIN)):
    times = croniter("30 2 * * *", day)
    print("croniter:", *(times.get_next(datetime).strftime("%m-%dT%H:%M%z") for _ in range(2)))
PYTHON
cat >expected <<'TIMES'
robfig: 03-31T02:30+0200 04-01T02:30+0200
robfig: 10-26T02:30+0200 10-26T02:30+0100
robfig: 0 3 * * 0 is accepted: true
robfig: 0 3 * * 7 is accepted: false
robfig: 0 3 * * 1-7 is accepted: false
croniter: 03-30T03:00+0200 03-31T02:30+0200
croniter: 10-26T02:30+0200 10-26T02:30+0100
TIMES
go mod init example.com/times 2>/dev/null
go get github.com/robfig/cron/v3@v3.0.1 2>/dev/null
{ go run .; venv/bin/python times.py; } | tee found
diff expected found || { echo "changed: see above" >&2; exit 1; }
