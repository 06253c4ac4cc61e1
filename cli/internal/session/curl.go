package session

import (
	"fmt"
	"slices"
	"strings"
)

// PrintCurl prints the command that would send the call. The token is a variable, so that it is in no history of
// commands.
func (s *Session) PrintCurl(c *Call) error {
	if err := s.choose(); err != nil {
		return err
	}
	r, options, err := s.request(c)
	if err != nil {
		return err
	}
	for _, option := range options {
		option(&r)
	}
	address := strings.TrimSuffix(s.context.URL, "/") + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	parts := []string{"curl", "-X", r.Method, quote(address)}
	if !r.Open {
		parts = append(parts, "-H", `"Authorization: Bearer $IDPCLI_TOKEN"`)
	}
	if r.Body != nil {
		parts = append(parts, "-H", quote("Content-Type: "+r.ContentType))
	}
	if tenant := s.TenantName(); tenant != "" {
		parts = append(parts, "-H", quote("X-Tenant-Id: "+tenant))
	}
	var names []string
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		parts = append(parts, "-H", quote(name+": "+r.Header.Get(name)))
	}
	if c.Upload != nil {
		parts = append(parts, "--data-binary", "@-")
	} else if c.Body != nil {
		parts = append(parts, "--data-binary", quote(string(c.Body)))
	}
	_, err = fmt.Fprintln(s.Out, strings.Join(parts, " "))
	return err
}

// quote makes one word of a POSIX shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
