package user

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A search finds a mobile number without its country code.
func TestCountryCode(t *testing.T) {
	t.Parallel()
	for number, national := range map[string]string{
		"+8613800138000": "13800138000", "+12025550123": "2025550123", "+79161234567": "9161234567",
		"+491711234567": "1711234567", "+358401234567": "401234567", "+85251234567": "51234567",
		"+886912345678": "912345678", "+2348031234567": "8031234567", "+201001234567": "1001234567", "": "",
	} {
		require.Equal(t, national, countryCode.ReplaceAllString(number, ""), number)
	}
}
