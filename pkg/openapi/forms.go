package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2/yaml"
)

// Forms are a document as it is served. Their members are sorted, so equal documents give equal bytes.
type Forms struct {
	JSON, YAML []byte // of version 3.1
	JSON30     []byte // of version 3.0.3
}

// FormsOf writes a document of version 3.1. It changes the document.
func FormsOf(document map[string]any) (f Forms, err error) {
	if f.JSON, err = encode(document); err != nil {
		return Forms{}, err
	}
	var asYAML bytes.Buffer
	if err := yaml.Convert(&asYAML, bytes.NewReader(f.JSON)); err != nil {
		return Forms{}, fmt.Errorf("write the OpenAPI document as YAML: %w", err)
	}
	f.YAML = asYAML.Bytes()
	Downgrade(document)
	f.JSON30, err = encode(document)
	return f, err
}

func encode(document map[string]any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	return b.Bytes(), nil
}
