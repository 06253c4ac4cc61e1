// Command echo is a function in Go: GOOS=wasip1 GOARCH=wasm go build. It answers with its input and a variable of its
// environment.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	if bytes.Equal(input, []byte(`"fail"`)) {
		fmt.Fprintln(os.Stderr, "asked to fail")
		os.Exit(3)
	}
	_, noFile := os.ReadFile("/etc/passwd")
	fmt.Fprintln(os.Stderr, "a line\nanother")
	fmt.Printf(`{"input":%s,"a":%q,"file":%t,"variables":%d}`, input, os.Getenv("A"), noFile == nil, len(os.Environ()))
}
