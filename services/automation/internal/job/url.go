package job

import (
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/weburl"
)

func checkURL(faults *apperr.Faults, text string) {
	u, err := weburl.HTTP(text)
	if err != nil {
		faults.Add("url", "%s", err)
		return
	}
	faults.Check(u.Fragment == "" && len(text) <= maxURL, "url", "must have at most %d bytes, and no fragment", maxURL)
}
