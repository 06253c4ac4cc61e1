package config

import (
	"reflect"
	"slices"
)

// validate calls Validate() error on a struct and those nested in it, inner ones first, and says in which section each fault is.
func validate(v reflect.Value, section string) []string {
	var faults []string
	for i := range v.NumField() {
		member := v.Type().Field(i)
		name, isField := tag(member)
		if !isField || !isSection(member.Type) {
			continue
		}
		inner := section
		if name != "" {
			inner += name + "."
		}
		faults = append(faults, validate(v.Field(i), inner)...)
	}
	if checked, ok := v.Addr().Interface().(interface{ Validate() error }); ok {
		for _, err := range unjoin(checked.Validate()) {
			// An embedded struct's method is the outer struct's too, and has then been called before.
			if fault := section + err.Error(); !slices.Contains(faults, fault) {
				faults = append(faults, fault)
			}
		}
	}
	return faults
}

// unjoin takes errors.Join apart.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // only what was joined at the top
	if !ok {
		return []error{err}
	}
	var all []error
	for _, inner := range joined.Unwrap() {
		all = append(all, unjoin(inner)...)
	}
	return all
}
