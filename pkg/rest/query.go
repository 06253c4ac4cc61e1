package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Paging is the part of a list operation's input that all lists have in common.
type Paging struct {
	PageNum   int    `query:"page_num" minimum:"1" default:"1" doc:"Page number, from 1"`
	PageSize  int    `query:"page_size" minimum:"1" maximum:"200" default:"20" doc:"Records a page"`
	PageToken string `query:"page_token" maxLength:"16384" doc:"A page's next_page_token, to continue after it at a cost that does not grow; instead of page_num"`
	PageSort  string `query:"page_sort" maxLength:"256" doc:"field[order], order asc or desc; several are joined by commas" example:"time_created[desc]"`
	Count     Flag   `query:"count" doc:"false leaves total out"`
}

// Page returns the page that a domain's list takes.
func (p Paging) Page() docstore.Paging {
	return docstore.Paging{
		Num: p.PageNum, Size: p.PageSize, Sort: p.PageSort, After: p.PageToken, Count: p.Count.Or(true),
	}
}

// Flag is a flag in a query, as text: true, false, 1 or 0.
type Flag string

// Schema allows only these values.
func (Flag) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Enum: []any{"true", "false", "1", "0"}}
}

// Or returns the flag's value, or absent if the flag is not given.
func (f Flag) Or(absent bool) bool {
	if f == "" {
		return absent
	}
	return f == "true" || f == "1"
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
