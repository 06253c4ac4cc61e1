package secret

import (
	"errors"
	"regexp"
	"strings"
)

var (
	scheme = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://`)
	// bare finds credentials before a host without a scheme, as lists of NATS servers can have them.
	bare = regexp.MustCompile(`(^|[\s,;="'(])[^\s,;="'(:/@]*:[^\s,;"'@]+@`)
	// parameter finds a query parameter whose name shows that its value is a secret.
	parameter = regexp.MustCompile(`(?i)([?&;,][^\s=&?;,"'<>]*` +
		`(?:pass|pwd|secret|token|key|sig|credential|authmechanismproperties)` +
		`[^\s=&?;,"'<>]*=)[^\s&;"'<>]+`)
)

// MaskURLs replaces the credentials in every URL of a text with Mask: what is before the @ of the authority, and the
// values of parameters with names such as password, token, key or sig. A URL ends at white space or where the next
// one starts. In doubt it masks too much: a URL with an @ in its path loses its host.
func MaskURLs(text string) string {
	if !strings.ContainsAny(text, "@=") {
		return text
	}
	starts := scheme.FindAllStringIndex(text, -1)
	if len(starts) == 0 {
		return bare.ReplaceAllString(text, "${1}"+Mask+"@")
	}
	var b strings.Builder
	b.WriteString(bare.ReplaceAllString(text[:starts[0][0]], "${1}"+Mask+"@"))
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		b.WriteString(text[at[0]:at[1]])
		b.WriteString(maskURL(text[at[1]:end]))
	}
	return b.String()
}

// maskURL masks the credentials in the text that follows a scheme.
func maskURL(rest string) string {
	url, tail := rest, ""
	if end := strings.IndexAny(rest, " \t\r\n"); end >= 0 {
		url, tail = rest[:end], rest[end:]
	}
	if at := strings.LastIndexByte(url, '@'); at >= 0 {
		url = Mask + url[at:]
	}
	return parameter.ReplaceAllString(url, "${1}"+Mask) + bare.ReplaceAllString(tail, "${1}"+Mask+"@")
}

// MaskError returns err with MaskURLs applied to its text. errors.Is and errors.As work as with err. A nil error
// stays nil.
func MaskError(err error) error {
	if err == nil {
		return nil
	}
	if text := MaskURLs(err.Error()); text != err.Error() {
		return &masked{text, err}
	}
	return err
}

type masked struct {
	text string
	err  error
}

func (m *masked) Error() string { return m.text }

// These take the place of Unwrap, which would give access to the unmasked text.
func (m *masked) Is(target error) bool { return errors.Is(m.err, target) }
func (m *masked) As(target any) bool   { return errors.As(m.err, target) }
