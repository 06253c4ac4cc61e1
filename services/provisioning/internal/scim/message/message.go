// Package message holds the bodies of the SCIM protocol: lists, errors, searches and Bulk requests (RFC 7644 §3.4, §3.7
// and §3.12, RFC 9865).
package message

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// The URNs of the messages.
const (
	ListURN         = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	ErrorURN        = "urn:ietf:params:scim:api:messages:2.0:Error"
	SearchURN       = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
	BulkRequestURN  = "urn:ietf:params:scim:api:messages:2.0:BulkRequest"
	BulkResponseURN = "urn:ietf:params:scim:api:messages:2.0:BulkResponse"
)

// The media types in which bodies come and go.
const (
	MediaType     = "application/scim+json"
	MediaTypeJSON = "application/json"
)

// List is an answer with resources. StartIndex is 0, and left out, where a cursor was used.
type List struct {
	Schemas      []string          `json:"schemas"`
	TotalResults int64             `json:"totalResults"`
	ItemsPerPage int               `json:"itemsPerPage"`
	StartIndex   int64             `json:"startIndex,omitempty"`
	NextCursor   string            `json:"nextCursor,omitempty"`
	Resources    []json.RawMessage `json:"Resources"`
}

// NewList makes a list of resources that are JSON already.
func NewList(total, startIndex int64, next string, resources []json.RawMessage) List {
	if resources == nil {
		resources = []json.RawMessage{}
	}
	return List{[]string{ListURN}, total, len(resources), startIndex, next, resources}
}

// Error is the body of an error.
type Error struct {
	Schemas  []string  `json:"schemas"`
	Status   string    `json:"status"`
	ScimType scim.Type `json:"scimType,omitempty"`
	Detail   string    `json:"detail,omitempty"`
}

// NewError makes the body for an error that is answered with a status. Of what is not for clients it tells nothing. All
// faults are in the detail, since SCIM has no member for them.
func NewError(status int, err error) Error {
	body := Error{Schemas: []string{ErrorURN}, Status: strconv.Itoa(status), Detail: http.StatusText(status)}
	e, is := errors.AsType[*apperr.Error](err)
	if !is {
		return body
	}
	if status < http.StatusInternalServerError {
		body.ScimType = scim.TypeOf(err)
	}
	if detail := detail(e); detail != "" {
		body.Detail = detail
	}
	return body
}

const maxFaults = 20 // told of in one answer

func detail(e *apperr.Error) string {
	if len(e.Faults) == 1 && e.Kind == apperr.AlreadyExists && !strings.Contains(e.Detail, e.Faults[0].Location) {
		return e.Detail + ": " + e.Faults[0].Location
	}
	if len(e.Faults) < 2 {
		return e.Detail
	}
	var told []string
	for _, f := range e.Faults[:min(len(e.Faults), maxFaults)] {
		told = append(told, strings.TrimSpace(f.Location+" "+f.Message))
	}
	return strings.Join(told, "; ")
}

// Search is the body of a search by POST (RFC 7644 §3.4.3), and equally the parameters of a search by GET.
type Search struct {
	Attributes []string
	Excluded   []string
	Filter     string
	SortBy     string
	Descending bool
	StartIndex int64 // from 1
	Count      int   // DefaultCount if absent
	Cursor     string
	HasCursor  bool // also of an empty one, which asks for the first page (RFC 9865 §2)
}

// The sizes of pages.
const (
	DefaultCount = 100
	MaxCount     = 200
)

// ParseSearch reads the body of a search by POST. Its errors have type invalidSyntax, invalidValue or invalidCount.
func ParseSearch(body []byte) (Search, error) {
	o, err := resource.DecodeObject(body)
	if err != nil {
		return Search{}, err
	}
	if !hasURN(member(o, "schemas"), SearchURN) {
		return Search{}, scim.Invalid(scim.InvalidSyntax, "schemas", "must be a list with %s", SearchURN)
	}
	parameters := map[string][]string{}
	for name, v := range o {
		name = strings.ToLower(name)
		switch v := v.(type) {
		case string:
			parameters[name] = []string{v}
		case json.Number:
			parameters[name] = []string{v.String()}
		case []any:
			for _, item := range v {
				s, is := item.(string)
				if !is {
					return Search{}, scim.Invalid(scim.InvalidValue, name, "must be a list of texts")
				}
				parameters[name] = append(parameters[name], s)
			}
		case nil:
		default:
			return Search{}, scim.Invalid(scim.InvalidValue, name, "must be a text, a number or a list")
		}
	}
	return SearchOf(func(name string) ([]string, bool) {
		v, has := parameters[strings.ToLower(name)]
		return v, has
	})
}

// SearchOf reads the parameters of a search. startIndex below 1 is 1, count below 0 is 0 and over MaxCount that (RFC
// 7644 §3.4.2.4).
func SearchOf(parameter func(name string) (values []string, has bool)) (Search, error) {
	first := func(name string) string {
		values, _ := parameter(name)
		if len(values) == 0 {
			return ""
		}
		return values[0]
	}
	s := Search{Filter: first("filter"), SortBy: first("sortBy"), Cursor: first("cursor")}
	s.Attributes, _ = parameter("attributes")
	s.Excluded, _ = parameter("excludedAttributes")
	_, s.HasCursor = parameter("cursor")
	switch order := first("sortOrder"); {
	case strings.EqualFold(order, "descending"):
		s.Descending = true
	case order != "" && !strings.EqualFold(order, "ascending"):
		return s, scim.Invalid(scim.InvalidValue, "sortOrder", "must be ascending or descending")
	}
	start, err := number(first("startIndex"), 1)
	if err != nil {
		return s, scim.Invalid(scim.InvalidValue, "startIndex", "must be a whole number")
	}
	count, err := number(first("count"), DefaultCount)
	if err != nil {
		kind := scim.InvalidValue
		if s.HasCursor {
			kind = scim.InvalidCount
		}
		return s, scim.Invalid(kind, "count", "must be a whole number")
	}
	s.StartIndex, s.Count = max(start, 1), int(min(max(count, 0), MaxCount))
	return s, nil
}

func number(s string, absent int64) (int64, error) {
	if s == "" {
		return absent, nil
	}
	return strconv.ParseInt(s, 10, 64)
}

func hasURN(v any, want string) bool {
	urns, is := v.([]any)
	for _, urn := range urns {
		if s, is := urn.(string); is && strings.EqualFold(s, want) {
			return true
		}
	}
	return v == nil && !is
}

// member returns the member of that name in any case.
func member(o resource.Object, name string) any {
	if v, has := o[name]; has {
		return v
	}
	for n, v := range o {
		if strings.EqualFold(n, name) {
			return v
		}
	}
	return nil
}
