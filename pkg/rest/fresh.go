package rest

import (
	"reflect"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Freshness says when an operation wants a recent sign-in in clients in which people sign in: when its answer shows a
// new secret, or when it deletes many records that the request does not name; "" means never. The members of an answer
// that can have a new secret have the format password.
type Freshness string

// FreshAlways is for an operation that wants a recent sign-in in every case.
const FreshAlways Freshness = "always"

// FreshIf is for an operation that wants a recent sign-in if this member of the body, a boolean, is true.
func FreshIf(member string) Freshness { return Freshness(inBody + member) }

// FreshIfQuery is for an operation that wants a recent sign-in if this parameter of the query, a Flag, is true.
func FreshIfQuery(parameter string) Freshness { return Freshness(inQuery + parameter) }

const (
	inBody  = "body."
	inQuery = "query."
)

// check panics if the request lacks the member or parameter that f names: the operation would never want a sign-in.
func (f Freshness) check(id string, input reflect.Type) {
	if f == "" || f == FreshAlways {
		return
	}
	if member, ok := strings.CutPrefix(string(f), inBody); ok {
		if body, has := input.FieldByName("Body"); has && hasBoolean(body.Type, member) {
			return
		}
	}
	if parameter, ok := strings.CutPrefix(string(f), inQuery); ok && hasFlag(input, parameter) {
		return
	}
	panic(id + ": Fresh must be FreshAlways, FreshIf a boolean member of the body, or FreshIfQuery a Flag of the query")
}

func hasFlag(input reflect.Type, parameter string) bool {
	for _, field := range reflect.VisibleFields(input) {
		if field.Tag.Get("query") == parameter && field.Type == reflect.TypeFor[docstore.Flag]() {
			return true
		}
	}
	return false
}

func hasBoolean(body reflect.Type, member string) bool {
	if body.Kind() == reflect.Pointer {
		body = body.Elem()
	}
	if body.Kind() != reflect.Struct {
		return false
	}
	for _, field := range reflect.VisibleFields(body) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == member && field.Type.Kind() == reflect.Bool {
			return true
		}
	}
	return false
}
