package rest

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// FormType is the content type of a form body.
const FormType = "application/x-www-form-urlencoded"

const maxForm = 64 << 10

// Form is the form body of an input, whose member must be called Form. W names the parameters by json tags; all are
// texts, also those of embedded structs. As RFC 6749 §3.2 requires, a parameter without a value counts as absent, an
// unknown one is ignored, and a repeated one is refused. The body must be sent as FormType, with at most 64 KiB.
type Form[W any] struct{ Value W }

type formBody interface{ parameters() reflect.Type }

func (*Form[W]) parameters() reflect.Type { return reflect.TypeFor[W]() }

// Resolve is called by huma.
func (f *Form[W]) Resolve(hc huma.Context) []error {
	call := humagin.Unwrap(hc).Request.Context().Value(callKey{}).(*call)
	v := reflect.ValueOf(&f.Value).Elem()
	for _, p := range call.op.form.parameters {
		v.FieldByIndex(p.index).SetString(call.form.Get(p.name))
	}
	return nil
}

// formShape describes the form of an operation's input.
type formShape struct {
	of         reflect.Type
	parameters []formParameter
}

type formParameter struct {
	name  string
	index []int // index of the member
}

// formOf returns the shape of an input's form, nil if it has none. It panics on a form with members that are not texts.
func formOf(input reflect.Type) *formShape {
	field, ok := input.FieldByName("Form")
	if !ok {
		return nil
	}
	form, ok := reflect.New(field.Type).Interface().(formBody)
	if !ok {
		return nil
	}
	shape := &formShape{of: form.parameters()}
	for _, f := range reflect.VisibleFields(shape.of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous: // its members are in the list of fields
		case f.Type.Kind() != reflect.String || name == "":
			panic("rest: the parameters of a form must be texts with json tags: " + shape.of.String() + "." + f.Name)
		default:
			shape.parameters = append(shape.parameters, formParameter{name, f.Index})
		}
	}
	return shape
}

// readForm reads a form before huma sees the request.
func readForm(op *Op, call *call, w http.ResponseWriter, r *http.Request) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != FormType {
		return apperr.New(apperr.UnsupportedMediaType, "the body must be %s", FormType)
	}
	call.buffer = bodyBuffers.Get().(*[]byte)
	body, err := receive(*call.buffer, newSteadyBody(w, r.Body, op.Timeout), maxForm)
	*call.buffer = body
	switch {
	case err != nil:
		return unreadable(err)
	case len(body) > maxForm:
		return apperr.New(apperr.TooLarge, "the body has more than %d bytes", maxForm)
	}
	if call.form, err = url.ParseQuery(string(body)); err != nil {
		// without the parser's error, which repeats the value
		return apperr.Invalid("body", "is not a well-formed form").Because(errors.New("bad percent-encoding"))
	}
	for _, p := range op.form.parameters {
		if len(call.form[p.name]) > 1 {
			return apperr.Invalid("body."+p.name, "is given twice")
		}
	}
	return nil
}
