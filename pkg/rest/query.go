package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
)

// flagSchema stands for docstore.Flag in the document.
type flagSchema struct{}

// Schema allows only the values of a flag.
func (flagSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{"true", "false", "1", "0"}}
}

// ReadTime reads the time of a query parameter, in the forms that clock.Parse takes. It returns the zero time if the
// parameter is absent, and adds a fault at location if the text is not a time.
func ReadTime(faults *apperr.Faults, location, text string) clock.Time {
	if text == "" {
		return clock.Time{}
	}
	t, err := clock.Parse(text)
	if err != nil {
		faults.Add(location, "%s", err)
	}
	return t
}
