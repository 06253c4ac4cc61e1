package mapping

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed windowszones.txt
var windowsZones string

// zones are the IANA names of Windows' time zones, by their names in lower case.
var zones = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for line := range strings.Lines(windowsZones) {
		if windows, iana, is := strings.Cut(strings.TrimSpace(line), ";"); is && !strings.HasPrefix(line, "#") {
			names[strings.ToLower(windows)] = iana
		}
	}
	return names
})

// Zone returns the IANA name of a time zone that has its Windows name, as Active Directory and Entra send it. It
// returns any other text as it is.
func Zone(name string) string {
	if iana, is := zones()[strings.ToLower(strings.TrimSpace(name))]; is {
		return iana
	}
	return name
}
