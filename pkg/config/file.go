package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readFile reads a YAML file; an empty path means no file. Values are used as they are written, not as YAML types
// them, so that 0123 and 1.10 stay unchanged in a text. A key without a value counts as not set.
func readFile(s *schema, path string) *layer {
	l := &layer{values: map[*field]written{}}
	if path == "" {
		return l
	}
	content, err := readBounded(path)
	if err != nil {
		l.faults = append(l.faults, fmt.Sprintf("the configuration file %s cannot be read: %s", path, err))
		return l
	}
	r := fileReader{s, l, filepath.Base(path), map[string]bool{}}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // an empty file
		return l
	case err != nil:
		r.fault(errorLine(err), "is not valid YAML")
		return l
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.fault(second.Line, "has more than one document, or is not valid YAML to its end")
	}
	r.section(document.Content[0], "")
	return l
}

// errorLine takes the line number out of a YAML error. The rest of the error is not used, because it may repeat the
// file's content.
func errorLine(err error) (line int) {
	if at := regexp.MustCompile(`line \d+`).FindString(err.Error()); at != "" {
		_, _ = fmt.Sscanf(at, "line %d", &line)
	}
	return line
}

type fileReader struct {
	schema *schema
	layer  *layer
	name   string
	seen   map[string]bool // full keys: nats.url can be nested or written with the dot
}

func (r *fileReader) where(line int, key string) string {
	at := r.name
	if line > 0 {
		at += fmt.Sprintf(":%d", line)
	}
	return strings.TrimSpace(at + " " + key)
}

func (r *fileReader) fault(line int, format string, args ...any) {
	r.layer.faults = append(r.layer.faults, r.where(line, "")+": "+fmt.Sprintf(format, args...))
}

// section reads a mapping whose keys start with prefix.
func (r *fileReader) section(node *yaml.Node, prefix string) {
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.fault(node.Line, "%s must hold keys and values", orRoot(prefix))
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := prefix+node.Content[i].Value, node.Content[i+1]
		line := node.Content[i].Line
		if r.seen[key] {
			r.fault(line, "%s appears twice", key)
			continue
		}
		r.seen[key] = true
		if r.schema.sections[key] {
			r.section(value, key+".")
			continue
		}
		f := r.schema.byKey[key]
		if f == nil {
			known := []string{}
			for k := range r.schema.byKey {
				known = append(known, k)
			}
			r.fault(line, "%s is not known%s", key, didYouMean(key, known, ""))
			continue
		}
		if isNull(value) {
			continue
		}
		text, ok := plain(value)
		if !ok {
			r.fault(line, "%s must be a single value, a list of values or a map of values", key)
			continue
		}
		r.layer.values[f] = written{r.where(line, key), text}
	}
}

func orRoot(prefix string) string {
	if prefix == "" {
		return "the file"
	}
	return strings.TrimSuffix(prefix, ".")
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// plain returns a scalar as string, a sequence as []string, a mapping as map[string]string. Aliases are refused.
func plain(node *yaml.Node) (any, bool) {
	switch node.Kind {
	case yaml.ScalarNode:
		return node.Value, true
	case yaml.SequenceNode:
		list := []string{}
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, false
			}
			list = append(list, item.Value)
		}
		return list, true
	case yaml.MappingNode:
		pairs := map[string]string{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			if _, twice := pairs[key.Value]; twice || key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
				return nil, false
			}
			pairs[key.Value] = value.Value
		}
		return pairs, true
	}
	return nil, false
}
