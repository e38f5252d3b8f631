// An S3-compatible server that checks signatures (AWS Signature Version 4) and keeps its content in memory.
// Usage: s3 ADDRESS ACCESS_KEY SECRET_KEY
package main

import (
	"log"
	"net/http"
	"os"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

func main() {
	keys := map[string]string{os.Args[2]: os.Args[3]}
	server := gofakes3.New(s3mem.New(), gofakes3.WithV4Auth(keys), gofakes3.WithGlobalLog())
	log.Fatal(http.ListenAndServe(os.Args[1], server.Server()))
}
