package commands

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

const mostRead = "200" // records that near ones are looked for in

// kind says how records are found by a name that a tenant, or an application, has once.
type kind struct {
	noun string // what people call one
	list string // the operation that lists them
	get  string // the operation that reads one by its id; "": its ids are found in the list alone
	name string // the member that names them; the list may have it as a filter

	before string // what people write before the name: the application and a colon
}

// The kinds of records whose lists filter by their exact names.
var (
	jobKind       = kind{noun: "job", list: "list-jobs", get: "get-job", name: "code"}
	functionKind  = kind{noun: "function", list: "list-functions", get: "get-function", name: "code"}
	componentKind = kind{noun: "component", list: "list-components", get: "get-component", name: "code"}
	treeKind      = kind{noun: "tree", list: "list-core-objects", name: "code"}
	groupKind     = kind{noun: "group", list: "list-auth-units", name: "identity_id"}
	resourceKind  = kind{noun: "resource", list: "list-resources", get: "get-resource", name: "code"}
	setKind       = kind{noun: "resource set", list: "list-resource-sets", get: "get-resource-set", name: "code"}
)

// id is a finder.
func (k kind) id(ctx context.Context, s *session.Session, name string) (string, error) {
	record, err := k.find(ctx, s, name, nil)
	return record.Text("id"), err
}

// find finds the only record with a name, or with an id. within are further parameters of the list.
func (k kind) find(ctx context.Context, s *session.Session, name string, within url.Values) (output.Object, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	fits, err := k.fits(ctx, client, name, within)
	switch {
	case err != nil:
		return nil, err
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) == 0:
		all, err := k.read(ctx, client, within)
		if err != nil {
			return nil, err
		}
		return nil, none(k.noun, k.before+name, nearWithin(k.before, name, k.names(all)))
	}
	var list []found
	for _, o := range fits {
		list = append(list, found{k.before + o.Text("id"), strings.TrimSpace(o.Text("type") + " " + o.Text(k.name))})
	}
	return nil, several(k.noun, k.before+name, "name one by its id", list)
}

// fits returns the records with a name or an id.
func (k kind) fits(ctx context.Context, client *idp.Client, name string, within url.Values) ([]output.Object, error) {
	query := maps.Clone(within)
	if query == nil {
		query = url.Values{}
	}
	if session.Operation(k.list).Has("query", k.name) {
		query.Set(k.name, name)
	}
	all, err := k.read(ctx, client, query)
	if err != nil {
		return nil, err
	}
	fits := slices.DeleteFunc(all, func(o output.Object) bool { return o.Text(k.name) != name && o.Text("id") != name })
	if k.get == "" || !digits.MatchString(name) {
		return fits, nil
	}
	o, within := session.Operation(k.get), maps.Clone(within)
	maps.DeleteFunc(within, func(parameter string, _ []string) bool { return !o.Has("query", parameter) })
	value, err := get(ctx, client, strings.Replace(o.Path, "{id}", name, 1), within, o.Scope)
	if idp.CodeOf(err) == idp.CodeNotFound {
		return fits, nil
	}
	record, isRecord := value.(output.Object)
	same := func(o output.Object) bool { return o.Text("id") == name }
	if err == nil && isRecord && !slices.ContainsFunc(fits, same) {
		fits = append(fits, record)
	}
	return fits, err
}

// read reads the first page of the list.
func (k kind) read(ctx context.Context, client *idp.Client, within url.Values) ([]output.Object, error) {
	o, query := session.Operation(k.list), url.Values{}
	maps.Copy(query, within)
	if o.Paged {
		query.Set("count", "false")
		query.Set("page_size", mostRead)
	}
	value, err := get(ctx, client, o.Path, query, o.Scope)
	if err != nil {
		return nil, err
	}
	list, _ := output.List(value, "")
	var out []output.Object
	for _, item := range list {
		if record, isRecord := item.(output.Object); isRecord {
			out = append(out, record)
		}
	}
	return out, nil
}

func (k kind) names(all []output.Object) []string {
	var out []string
	for _, o := range all {
		out = append(out, o.Text(k.name))
	}
	return out
}

// known completes the name.
func (k kind) known() known {
	return known{k.noun, func(ctx context.Context, client *idp.Client, prefix string) ([]string, error) {
		all, err := k.read(ctx, client, nil)
		return k.like(all, prefix, ""), err
	}}
}

// like are the names that begin with a prefix, as a completion shows them.
func (k kind) like(all []output.Object, prefix, before string) []string {
	var out []string
	for _, o := range all {
		if strings.HasPrefix(o.Text(k.name), prefix) && len(out) < completeSize {
			out = append(out, before+o.Text(k.name)+"\t"+output.Printable(o.Text("name")))
		}
	}
	return out
}

// get reads a path.
func get(ctx context.Context, client *idp.Client, path string, query url.Values, scope string) (any, error) {
	response, err := client.Do(ctx, idp.Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return nil, failure.WithScope(err, scope)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return output.Parse(text)
}

// readAll reads all pages of a list, to find a record in it. path are the values of the path's parameters.
func readAll(
	ctx context.Context, s *session.Session, operation string, query url.Values, path ...string,
) ([]output.Object, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	o, out := session.Operation(operation), []output.Object(nil)
	address := o.Path
	for i, p := range o.In("path") {
		address = strings.Replace(address, "{"+p.Name+"}", url.PathEscape(path[i]), 1)
	}
	more := url.Values{"page_size": {mostRead}, "count": {"false"}}
	maps.Copy(more, query)
	for {
		value, err := get(ctx, client, address, more, o.Scope)
		if err != nil {
			return nil, err
		}
		list, _ := output.List(value, "")
		for _, item := range list {
			if record, isRecord := item.(output.Object); isRecord {
				out = append(out, record)
			}
		}
		page, _ := value.(output.Object)
		next := page.Text("next_page_token")
		if next == "" {
			return out, nil
		}
		more.Set("page_token", next)
	}
}
