package config

import (
	"reflect"
	"slices"
)

// validate calls Validate() error on a struct and on the structs nested in it, inner ones first. Each fault starts
// with the section it is in.
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
			// The method of an embedded struct is also the outer struct's, so its faults come twice.
			if fault := section + err.Error(); !slices.Contains(faults, fault) {
				faults = append(faults, fault)
			}
		}
	}
	return faults
}

// unjoin returns the errors that errors.Join joined.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error }) // only an error that is itself a join
	if !ok {
		return []error{err}
	}
	var all []error
	for _, inner := range joined.Unwrap() {
		all = append(all, unjoin(inner)...)
	}
	return all
}
