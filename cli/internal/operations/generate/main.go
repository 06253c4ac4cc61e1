// Generate writes the table of operations that the command line is built with: its arguments are the OpenAPI document
// and the file to write.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/idplatform/idplatform/cli/internal/operations"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "generate: the arguments are the OpenAPI document and the file to write")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(document, file string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	table, err := operations.Parse(text)
	if err != nil {
		return err
	}
	var out bytes.Buffer // one operation a line, so that changes are easy to see
	for i, o := range table.All {
		line, err := json.Marshal(o)
		if err != nil {
			return err
		}
		out.WriteString(map[bool]string{true: "[", false: ",\n"}[i == 0])
		out.Write(line)
	}
	out.WriteString("]\n")
	return os.WriteFile(file, out.Bytes(), 0o644)
}
