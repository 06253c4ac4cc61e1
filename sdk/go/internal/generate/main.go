// Generate writes the generated part of the Go SDK: models.go by oapi-codegen, enums.go, and calls_*.go from
// calls.tmpl. It reads the platform's OpenAPI document in version 3.0. From the catalogue of events it writes the
// types of events of both SDKs.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	document := flag.String("document", "", "the OpenAPI 3.0 document, as JSON")
	catalogue := flag.String("events", "", "the folder of the catalogue of events")
	out := flag.String("out", "", "the folder of the SDKs")
	flag.Parse()
	if err := run(*document, *catalogue, *out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(document, catalogue, out string) error {
	if document == "" || catalogue == "" || out == "" {
		return errors.New("-document, -events and -out are needed")
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
	if files["enums.go"], err = enums(d); err != nil {
		return err
	}
	if err := events(catalogue, files); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(out, "go", "calls_*.go"))
	if err != nil {
		return err
	}
	for _, name := range old { // of tags that are no more
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for name, source := range files {
		if strings.HasSuffix(name, ".go") {
			if source, err = fit(source); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if err := os.WriteFile(filepath.Join(out, "go", name), source, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func events(catalogue string, files map[string][]byte) error {
	types, err := eventTypes(catalogue)
	if err != nil {
		return err
	}
	files["../typescript/runtime/events.gen.ts"] = typeScriptEvents(types)
	if files["events/types.go"], err = goEvents(types); err != nil {
		return err
	}
	files["../testdata/events.json"], err = examples(types)
	return err
}
