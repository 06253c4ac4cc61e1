package job

import (
	"net/url"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func checkURL(faults *apperr.Faults, text string) {
	u, err := url.Parse(text)
	ok := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.Fragment == ""
	faults.Check(ok && len(text) <= maxURL, "url",
		"must be an http or https URL of at most %d bytes, without user and fragment", maxURL)
}
