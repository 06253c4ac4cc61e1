// Command openapi makes one OpenAPI document of those of the services: its arguments are their files.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/pkg/openapi"
)

func main() {
	out := flag.String("out", "bin/openapi.json", "the file to write")
	older := flag.String("older", "bin/openapi-3.0.json", "the file to write in version 3.0.3")
	packed := flag.String("packed", "gateway/openapi.json.gz", "the file to write for the gateway, which builds it in")
	flag.Parse()
	if err := run(flag.Args(), *out, *older, *packed); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(files []string, out, older, packed string) error {
	document, err := merge(files)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		return err
	}
	parsed, err := openapi.Parse(text)
	if err != nil {
		return err
	}
	faults := openapi.Faults(parsed)
	forms, err := openapi.FormsOf(parsed) // which changes it to version 3.0.3
	if err != nil {
		return err
	}
	if faults = append(faults, openapi.Faults(parsed)...); len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	text = append(text, '\n')
	return errors.Join(os.WriteFile(out, text, 0o644), os.WriteFile(older, forms.JSON30, 0o644), pack(packed, text))
}

// pack writes a text compressed, unless the file has it already: each version of Go may compress differently.
func pack(file string, text []byte) error {
	if have, err := unpack(file); err == nil && bytes.Equal(have, text) {
		return nil
	}
	var body bytes.Buffer
	w, err := gzip.NewWriterLevel(&body, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, body.Bytes(), 0o644)
}

func unpack(file string) ([]byte, error) {
	body, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	r, err := gzip.NewReader(body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// merge makes one document of those in files, of version 3.1. What services share, such as the schema of a problem, is
// the same in each. The error names what is not.
func merge(files []string) (map[string]any, error) {
	paths, components, tags := map[string]any{}, map[string]any{}, []any{}
	var clashes []error
	add := func(file, what string, to map[string]any, from any) {
		members, _ := from.(map[string]any)
		for name, value := range members {
			if other, taken := to[name]; taken && !reflect.DeepEqual(other, value) {
				clashes = append(clashes, fmt.Errorf("%s: another service has another %s %s", file, what, name))
			}
			to[name] = value
		}
	}
	namedTags := map[string]any{}
	for _, file := range slices.Sorted(slices.Values(files)) { // whatever the order in which a shell lists them
		document, err := read(file)
		if err != nil {
			return nil, err
		}
		add(file, "path", paths, document["paths"])
		kinds, _ := document["components"].(map[string]any)
		for kind, members := range kinds {
			if components[kind] == nil {
				components[kind] = map[string]any{}
			}
			add(file, kind, components[kind].(map[string]any), members)
		}
		list, _ := document["tags"].([]any)
		for _, tag := range list {
			name, _ := tag.(map[string]any)["name"].(string)
			if namedTags[name] == nil {
				tags = append(tags, tag)
			}
			add(file, "tag", namedTags, map[string]any{name: tag})
		}
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "idplatform", "version": "1.0.0",
			"description": "Management interface of the identity platform: users, applications, permissions, " +
				"organization, identity sources, events, automation, provisioning and sign-in.",
			"license": map[string]any{"name": openapi.LicenseName, "url": openapi.LicenseURL},
			"contact": map[string]any{"name": openapi.ContactName, "url": openapi.ContactURL},
		},
		"servers": []any{map[string]any{"url": "/"}},
		"paths":   paths, "components": components, "tags": tags,
	}, errors.Join(clashes...)
}

// read reads a service's document.
func read(file string) (document map[string]any, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for member := range document {
		switch member {
		case "openapi", "info", "servers", "paths", "components", "tags":
		default:
			return nil, fmt.Errorf("%s: merge does not know the member %s", file, member)
		}
	}
	return document, nil
}
