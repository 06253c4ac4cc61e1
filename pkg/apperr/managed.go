package apperr

// Managed means that a provisioning connection owns the members at these locations, and only its client changes them.
func Managed(locations ...string) *Error {
	e := New(ManagedElsewhere, "a provisioning connection owns what would change")
	for _, l := range locations {
		e.Faults = append(e.Faults, Fault{Location: l, Message: "belongs to a provisioning connection"})
	}
	return e
}
