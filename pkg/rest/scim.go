package rest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/problem"
)

// SCIMType is the media type of SCIM's bodies (RFC 7644 §8.1). Requests may have application/json instead.
const SCIMType = "application/scim+json"

// SCIMFault makes the body of an error that is answered with a status (RFC 7644 §3.12). An Op with one is an operation
// of SCIM: its errors have this form, its bodies are of SCIMType or JSON, its schema allows any member.
type SCIMFault func(status int, err error) any

// SCIMObject is a body that SCIM's own schemas describe, not the OpenAPI document.
type SCIMObject map[string]any

// SCIMAnswer is the answer of a SCIM operation.
type SCIMAnswer struct {
	Status   int    // 0 means 200
	JSON     []byte // nil: there is no body
	Version  string // the entity tag of the resource, W/"3"; "" if the answer is none
	Location string // of a resource that was made
	MaxAge   string // Cache-Control, for documents that are the same for everybody; "" means that nothing keeps it
}

func (a SCIMAnswer) answer() (answer, error) {
	status := a.Status
	if status == 0 {
		status = http.StatusOK
	}
	return answer{Status: status, ContentType: SCIMType, ETag: a.Version, Location: a.Location, Cache: a.MaxAge,
		Body: a.JSON}, nil
}

// Schema is that of a SCIMObject.
func (SCIMAnswer) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[SCIMObject](), true, "")
}

// SCIMMatches reports whether an If-Match allows a change of a resource with this entity tag. SCIM's tags are weak, and
// If-Match compares them all the same (RFC 7644 §3.14).
func SCIMMatches(ifMatch, version string) bool {
	for _, tag := range entityTags([]string{ifMatch}) {
		if tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(version, "W/") {
			return true
		}
	}
	return false
}

// AcceptOpaque makes the server take opaque tokens, beside those of the Verifier. It is called before Tagged.
func (s *Server) AcceptOpaque(o *auth.Opaque) { s.opaque = o }

// mergePatchType is the type of a JSON merge patch (RFC 7396 §4). PATCH takes it beside application/json.
const mergePatchType = "application/merge-patch+json"

// takes reports whether a JSON body may have this content type.
func (op *Op) takes(contentType string) bool {
	if isJSON(contentType) {
		return true
	}
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.TrimSpace(media)
	return op.SCIM != nil && strings.EqualFold(media, SCIMType) ||
		op.Method == http.MethodPatch && strings.EqualFold(media, mergePatchType)
}

// success is the status of the operation's answers.
func (op *Op) success() int {
	if op.Success == 0 {
		return http.StatusOK
	}
	return op.Success
}

// SCIMRoot is where the operations of SCIM are. What no operation takes there is answered with an error of SCIM, too.
type SCIMRoot struct {
	Path   string // "" if the server has none: /scim/v2
	Fault  SCIMFault
	Absent []string // below Path: what SCIM has and the server has not, so that every method is answered with 501
}

// ServeSCIM says where the operations of SCIM are.
func (s *Server) ServeSCIM(root SCIMRoot) { s.scim = root }

// below returns what follows the root in a path.
func (r *SCIMRoot) below(path string) (below string, is bool) {
	below, is = strings.CutPrefix(path, r.Path)
	return below, is && r.Path != "" && (below == "" || below[0] == '/')
}

func (r *SCIMRoot) refuse(w http.ResponseWriter, below string, err error) {
	status := problem.Status(apperr.KindOf(err))
	if apperr.KindOf(err) == apperr.MethodNotAllowed && slices.Contains(r.Absent, below) {
		status, err = http.StatusNotImplemented, apperr.New(apperr.MethodNotAllowed, "the service does not have it")
		w.Header().Del("Allow")
	}
	writeSCIMStatus(w, status, err, r.Fault)
}

func writeSCIM(w http.ResponseWriter, err error, fault SCIMFault) {
	writeSCIMStatus(w, problem.Status(apperr.KindOf(err)), err, fault)
}

func writeSCIMStatus(w http.ResponseWriter, status int, err error, fault SCIMFault) {
	problem.Headers(w.Header(), err)
	w.Header().Set("Content-Type", SCIMType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(fault(status, err)) // the client may have disconnected
}

// scimRefusal is a SCIM error in the form that huma expects of errors.
type scimRefusal struct {
	fault SCIMFault
	err   error
}

func (r *scimRefusal) Error() string             { return r.err.Error() }
func (r *scimRefusal) GetStatus() int            { return problem.Status(apperr.KindOf(r.err)) }
func (r *scimRefusal) ContentType(string) string { return SCIMType }

// MarshalJSON is the body.
func (r *scimRefusal) MarshalJSON() ([]byte, error) {
	return json.Marshal(r.fault(r.GetStatus(), r.err))
}

// SCIMError describes the body of an error for the OpenAPI document.
type SCIMError struct {
	Schemas  []string `json:"schemas" doc:"urn:ietf:params:scim:api:messages:2.0:Error"`
	Status   string   `json:"status" doc:"The HTTP status" example:"400"`
	SCIMType string   `json:"scimType,omitempty" doc:"RFC 7644 §3.12" example:"invalidValue"`
	Detail   string   `json:"detail,omitempty" doc:"What is wrong, for people"`
}

// scimContent is a body of both media types.
func scimContent(body *huma.MediaType) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{SCIMType: body, "application/json": body}
}

// SCIMRequest is what a SCIM operation needs of a request beside its body. Embed it in the input.
type SCIMRequest struct {
	Method  string `json:"-"`
	Target  string `json:"-"` // the path, with its query
	IfMatch string `json:"-"` // the header; "" if there is none
	query   url.Values
}

// Resolve is called by huma.
func (q *SCIMRequest) Resolve(hc huma.Context) []error {
	r := humagin.Unwrap(hc).Request
	q.Method, q.Target, q.query = r.Method, r.URL.RequestURI(), r.URL.Query()
	q.IfMatch = strings.Join(r.Header.Values("If-Match"), ",")
	return nil
}

// Parameter returns the values of a query parameter, whose name is compared in any case.
func (q *SCIMRequest) Parameter(name string) (values []string, has bool) {
	for n, v := range q.query {
		if strings.EqualFold(n, name) {
			values, has = append(values, v...), true
		}
	}
	return values, has
}
