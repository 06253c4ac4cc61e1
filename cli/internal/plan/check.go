package plan

import (
	"fmt"
	"slices"
	"strings"
)

// checkContents finds what the files, with what runs, tell of themselves. The platform is asked about a step only once
// the records are there that it needs: without this, such a fault would stop an apply midway.
func (p *Plan) checkContents(desired []*Desired) error {
	var faults []string
	for _, w := range desired {
		switch w.Kind {
		case rule, member:
			faults = append(faults, p.unknownActions(w)...)
		case protocol:
			faults = append(faults, p.missingSettings(w)...)
		case node:
			faults = append(faults, p.pointerCircle(w)...)
		}
	}
	return unusable(faults)
}

func (w *Desired) fault(member, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", w.File, w.line(member), fmt.Sprintf(format, args...))
}

// unknownActions are the actions of a rule, or of a member of a set, that its resource does not have.
func (p *Plan) unknownActions(w *Desired) []string {
	for _, ref := range needs(w.Ref, w.Values) {
		of := p.desired[ref]
		if ref.Kind != resource || of == nil || of.Values["actions"] == nil {
			continue // the resource is no part of the files, and the platform tells
		}
		has := map[any]bool{"*": true}
		list, _ := of.Values["actions"].([]any)
		for _, item := range list {
			action, _ := item.(map[string]any)
			has[action["code"]] = true
		}
		var faults []string
		actions, _ := w.Values["actions"].([]any)
		for _, action := range actions {
			if code, is := action.(string); is && !has[code] {
				faults = append(faults, w.fault("actions", "%s, in %s, has no action %q", ref, of.Place(), code))
			}
		}
		return faults
	}
	return nil
}

// missingSettings are what a protocol needs to be enabled, and what neither the files have nor the platform.
func (p *Plan) missingSettings(w *Desired) []string {
	s := &Step{Ref: w.Ref, want: w, record: p.actual.records[w.Ref]}
	if w.Values["status"] != "1" || len(p.status(s, nil)) == 0 { // it is enabled already, or with its application
		return nil
	}
	of := Ref{application, fmt.Sprint(w.Values["application"])}
	own := func(name string) bool { return p.wants(w.Ref, "protocol_prop."+name) }
	kind, faults := w.Values["type"], []string(nil)
	switch {
	case kind == "saml":
		for _, name := range []string{"acs_url", "sp_entity"} {
			if !own(name) {
				text := "saml cannot be enabled without protocol_prop." + name
				faults = append(faults, w.fault("protocol_prop", "%s", text))
			}
		}
	case (kind == "cas" || kind == "oidc") && !p.wants(of, "redirect_url"):
		faults = append(faults, w.fault("type", "%s cannot be enabled without redirect_url of %s", kind, of))
	}
	return faults
}

// wants reports whether a record will have a member: by the files or, if they do not have it, because it has it now.
func (p *Plan) wants(ref Ref, member string) bool {
	if w := p.desired[ref]; w != nil {
		if value, has := at(w.Values, member); has {
			return !empty(value)
		}
	}
	if r := p.actual.records[ref]; r != nil {
		value, _ := at(r.Values, member)
		return !empty(value)
	}
	return false
}

// pointerCircle is the fault of a pointer that leads back to itself.
func (p *Plan) pointerCircle(w *Desired) []string {
	names, next := []string{w.Key}, w
	for next != nil {
		pointer, _ := next.Values["pointer"].(string)
		if pointer == "" {
			return nil
		}
		if pointer == w.Key {
			return []string{w.fault("pointer", "%s: pointers lead in a circle",
				strings.Join(append(names, pointer), " → "))}
		}
		if slices.Contains(names, pointer) {
			return nil // it is told at the nodes of the circle
		}
		names, next = append(names, pointer), p.desired[Ref{node, pointer}]
	}
	return nil
}
