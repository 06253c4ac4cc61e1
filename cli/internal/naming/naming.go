// Package naming reads and writes names of what belongs to an application: crm:invoice. Applications can have any
// characters in their names; a colon and a backslash in one have a backslash before them.
package naming

import "strings"

var escape = strings.NewReplacer(`\`, `\\`, ":", `\:`)

// Escape is the name of an application as it stands before a colon, or alone where a colon could follow.
func Escape(application string) string { return escape.Replace(application) }

// Join names a record of an application.
func Join(application, code string) string { return Escape(application) + ":" + code }

// Cut separates the name of an application from the code that follows it. It reports whether there is a colon between
// them.
func Cut(name string) (application, code string, has bool) {
	var out strings.Builder
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == ':':
			return out.String(), name[i+1:], true
		case name[i] == '\\' && i+1 < len(name) && (name[i+1] == ':' || name[i+1] == '\\'):
			i++
		}
		out.WriteByte(name[i])
	}
	return out.String(), "", false
}
