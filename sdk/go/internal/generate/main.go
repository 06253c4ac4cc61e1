// Generate writes the generated part of the Go SDK: models.go by oapi-codegen, and calls_*.go from calls.tmpl. It reads
// the platform's OpenAPI document in version 3.0.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	document := flag.String("document", "", "the OpenAPI 3.0 document, as JSON")
	out := flag.String("out", "", "the folder of the package")
	flag.Parse()
	if err := run(*document, *out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(document, out string) error {
	if document == "" || out == "" {
		return errors.New("-document and -out are needed")
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	source, err := models(text) // it comes first, because it makes the rules for names known
	if err != nil {
		return err
	}
	files, err := calls(d)
	if err != nil {
		return err
	}
	files["models.go"] = source
	old, err := filepath.Glob(filepath.Join(out, "calls_*.go"))
	if err != nil {
		return err
	}
	for _, name := range old { // of tags that are no more
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for name, source := range files {
		if err := os.WriteFile(filepath.Join(out, name), source, 0o644); err != nil {
			return err
		}
	}
	return nil
}
