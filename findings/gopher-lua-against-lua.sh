#!/usr/bin/env bash
# gopher-lua, which runs the health checks of Argo CD, beside Lua 5.1, which a test of such a check has at hand.
#
# Software: github.com/yuin/gopher-lua v1.1.2; Lua 5.1 of the wheel lupa 2.8.
# A good guess: gopher-lua is Lua 5.1 written in Go, so texts and numbers are the same in both.
# What happens: tonumber("1e3") is nil, and 1000 in Lua. tostring(100 * 0.57) is 56.99999999999999, and 57 in Lua.
# string.format("%s", nil) is "nil", and an error in Lua; with an argument too few it writes "%!s(MISSING)" where Lua raises.
# math.huge is a finite number, so 1/0 > math.huge. string.format("%u", 5) is "%!u(int64=5)".
# Why it matters: a quantity such as 1e3, which the API server keeps as it is, makes a check compare with nil, and a
# percentage in a message differs, though the tests pass. The other way, a test fails for a nil that Argo CD would print.
set -euo pipefail
command -v go >/dev/null || { echo "needs go" >&2; exit 3; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH="$folder/go" GOCACHE="$folder/cache" GOFLAGS=-modcacherw
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check lupa==2.8

cat >expressions <<'LUA'
tostring(tonumber("1000"))
tostring(tonumber("1e3"))
tostring(100 * 0.57)
string.format("%d %.1f%%", 3, 12.345)
string.format("%s", nil)
string.format("%s of %s", "3")
string.format("%u", 5)
tostring(1/0 > math.huge)
LUA
cat >expected <<'LUA'
1000 | 1000
nil | 1000
56.99999999999999 | 57
3 12.3% | 3 12.3%
nil | error
3 of %!s(MISSING) | error
%!u(int64=5) | 5
true | false
LUA
cat >main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		state := lua.NewState()
		if state.DoString("return "+lines.Text()) != nil {
			fmt.Println("error")
		} else {
			fmt.Println(state.Get(-1))
		}
		state.Close()
	}
}
GO
cat >lua.py <<'PYTHON'
import sys

from lupa import lua51

for line in sys.stdin:
    try:
        print(lua51.LuaRuntime().eval(line))
    except lua51.LuaError:
        print("error")
PYTHON
go mod init example.com/health 2>/dev/null
go get github.com/yuin/gopher-lua@v1.1.2 2>/dev/null
go run . <expressions >go.out
venv/bin/python lua.py <expressions >lua.out
paste -d'|' go.out lua.out | sed 's/|/ | /' >found
echo "expression | gopher-lua | Lua 5.1"
paste -d'|' expressions found | sed 's/|/ | /'
diff expected found || { echo "changed: see above" >&2; exit 1; }
