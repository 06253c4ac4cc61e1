package realname

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var now = time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)

func TestCheckResidentID(t *testing.T) {
	t.Parallel()
	// Those without an error are the standard's own examples or from public descriptions of it.
	for number, want := range map[string]error{
		"11010519491231002X":      nil,
		"440524188001010014":      errDate, // the standard's example of someone born in 1880
		"34052419800101001X":      nil,
		"":                        errForm,
		"110105491231002":         errForm, // the old form of 15 digits
		"11010519491231002":       errForm,
		"11010519491231002XX":     errForm,
		"11010519491231002x":      errForm, // not normalized
		"1101051949123100X2":      errForm,
		"１１０１０５":                  errForm,
		"11010519491231 02X":      errForm,
		"-1010519491231002X":      errForm,
		"99010519491231002X":      errPlace,
		"00010519491231002X":      errPlace,
		with("11010518991231002"): errDate,
		with("11010519000101002"): nil,
		with("11010520230229002"): errDate,
		with("11010520240229002"): nil,
		with("11010520001301002"): errDate,
		with("11010520000001002"): errDate,
		with("11010520260131002"): nil,
		with("11010520260201002"): errDate,
		with("11010599991231002"): errDate,
		"110105194912310021":      errCheck,
		"110105194912310020":      errCheck,
	} {
		require.Equal(t, want, CheckResidentID(number, now), number)
	}
}

func with(digits string) string { return digits + string(checkDigit(digits)) }

func TestTodayIsTodayInChina(t *testing.T) {
	t.Parallel()
	number := with("11010520260201002")
	require.Error(t, CheckResidentID(number, time.Date(2026, 1, 31, 15, 59, 59, 0, time.UTC)))
	require.NoError(t, CheckResidentID(number, time.Date(2026, 1, 31, 16, 0, 0, 0, time.UTC)))
}

func TestEveryProvince(t *testing.T) {
	t.Parallel()
	known := 0
	for code := range 100 {
		if CheckResidentID(with(fmt.Sprintf("%02d010519491231002", code)), now) == nil {
			known++
		}
	}
	require.Equal(t, 35, known)
}

var someNumber = rapid.Custom(func(t *rapid.T) string {
	province := rapid.SampledFrom(strings.Fields(provinces)).Draw(t, "province")
	days := rapid.IntRange(0, 46000).Draw(t, "days")
	born := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, days).Format("20060102")
	return with(province + rapid.StringMatching(`[0-9]{4}`).Draw(t, "county") + born + rapid.StringMatching(`[0-9]{3}`).
		Draw(t, "order"))
})

func TestOneWrongDigitIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := someNumber.Draw(t, "number")
		require.NoError(t, CheckResidentID(number, now))
		at := rapid.IntRange(0, 17).Draw(t, "at")
		wrong := rapid.SampledFrom([]byte("0123456789X")).Draw(t, "digit")
		if number[at] == wrong {
			return
		}
		require.Error(t, CheckResidentID(number[:at]+string(wrong)+number[at+1:], now))
	})
}

func TestSwappedNeighboursAreFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := []byte(someNumber.Draw(t, "number"))
		at := rapid.IntRange(0, 16).Draw(t, "at")
		if number[at] == number[at+1] {
			return
		}
		number[at], number[at+1] = number[at+1], number[at]
		require.Error(t, CheckResidentID(string(number), now))
	})
}

// The check digit alone finds both, whatever date and province are.
func TestCheckDigitFindsCommonMistakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := []byte(rapid.StringMatching(`[0-9]{17}`).Draw(t, "digits"))
		right := checkDigit(string(digits))
		at := rapid.IntRange(0, 15).Draw(t, "at")
		if digits[at] != digits[at+1] {
			digits[at], digits[at+1] = digits[at+1], digits[at]
			require.NotEqual(t, right, checkDigit(string(digits)))
			digits[at], digits[at+1] = digits[at+1], digits[at]
		}
		digits[at] = '0' + (digits[at]-'0'+byte(rapid.IntRange(1, 9).Draw(t, "by")))%10
		require.NotEqual(t, right, checkDigit(string(digits)))
	})
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"11010519491231002x": "11010519491231002X",
		"１１０１０５１９４９１２３１００２ｘ":                     "11010519491231002X",
		"１１０１０５１９４９１２３１００２Ｘ":                     "11010519491231002X",
		" 11010519491231002X\n":                  "11010519491231002X",
		"\u300011010519491231002X\u00a0":         "11010519491231002X",
		"ab-12":                                  "AB-12",
		"":                                       "",
		"\u0031\u0031010519491231002\u0078 \t\r": "11010519491231002X",
	} {
		require.Equal(t, want, Normalize(given))
		require.Equal(t, want, Normalize(want), "it is stable")
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"11010519491231002X": "1****************X", "": "", "1": "*", "12": "**", "123": "***", "1234": "1**4",
		"护照号码甲": "护***甲",
	} {
		require.Equal(t, want, Mask(number))
	}
}

func FuzzCheckResidentID(f *testing.F) {
	f.Add("11010519491231002X")
	f.Add("１１０１０５１９４９１２３１００２ｘ")
	f.Fuzz(func(t *testing.T, s string) {
		number := Normalize(s)
		require.Equal(t, number, Normalize(number))
		if CheckResidentID(number, now) == nil {
			require.Regexp(t, `^[1-8]\d{5}(19|20)\d{2}[01]\d[0-3]\d{4}[\dX]$`, number)
		}
		require.Equal(t, len([]rune(number)), len([]rune(Mask(number))))
	})
}

var claim = Claim{Name: "李伟", Number: "11010519491231002X", Type: "cn_resident_id"}

func TestHTTPVerifier(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string
		want   bool
		away   bool
	}{
		"verified":       {200, `{"verified": true}`, true, false},
		"not verified":   {200, `{"verified": false, "reason": "李伟 has another number"}`, false, false},
		"more members":   {200, `{"verified": true, "score": 1}`, true, false},
		"does not say":   {200, `{}`, false, true},
		"null":           {200, `{"verified": null}`, false, true},
		"as a text":      {200, `{"verified": "true"}`, false, true},
		"no JSON":        {200, `11010519491231002X`, false, true},
		"two values":     {200, `{"verified": true} {"verified": false}`, false, true},
		"huge":           {200, `{"verified": true, "x": "` + strings.Repeat("x", maxAnswer) + `"}`, false, true},
		"error":          {500, `{"verified": true}`, false, true},
		"not authorized": {401, `{"verified": true}`, false, true},
		"accepted only":  {202, `{"verified": true}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				var sent map[string]any
				if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || err != nil ||
					json.Unmarshal(body, &sent) != nil ||
					len(sent) != 3 || sent["real_name"] != "李伟" || sent["id_number"] != claim.Number ||
					sent["id_type"] != "cn_resident_id" {
					t.Errorf("sent: %s", body)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			verified, err := HTTPVerifier{server.URL, server.Client()}.Verify(t.Context(), claim)
			require.Equal(t, test.want, verified)
			if !test.away {
				require.NoError(t, err)
				return
			}
			require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
			require.NotContains(t, err.Error(), claim.Number)
			require.NotContains(t, err.Error(), claim.Name)
		})
	}
}

func TestHTTPVerifierAway(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(started)
		<-release
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	_, err := HTTPVerifier{server.URL + "?key=s3cret", server.Client()}.Verify(ctx, claim)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "s3cret")
	close(release)
	server.Close()

	_, err = HTTPVerifier{"http://127.0.0.1:1", http.DefaultClient}.Verify(t.Context(), claim)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
}
