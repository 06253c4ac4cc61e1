package idp

// The values of members that are on or off, such as status of an application. Where they mean more, the comment of the
// member says so.
const (
	On  = "1"
	Off = "0"
)
