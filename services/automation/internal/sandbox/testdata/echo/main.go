// Command echo is a function in Go: GOOS=wasip1 GOARCH=wasm go build. It answers with its input, a variable of its
// environment, and whether it could read a file.
package main

import (
	"io"
	"os"
	"strconv"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	if string(input) == `"fail"` {
		_, _ = os.Stderr.WriteString("asked to fail\n")
		os.Exit(3)
	}
	_, err = os.ReadFile("/etc/passwd")
	_, _ = os.Stderr.WriteString("a line\nanother")
	_, _ = os.Stdout.WriteString(`{"input":` + string(input) + `,"a":` + strconv.Quote(os.Getenv("A")) +
		`,"file":` + strconv.FormatBool(err == nil) + `,"variables":` + strconv.Itoa(len(os.Environ())) + `}`)
}
