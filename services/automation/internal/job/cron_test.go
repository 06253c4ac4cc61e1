package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timetables have the times that follow a time; "" for none.
var timetables = map[string]struct {
	expression, zone, after string
	want                    []string
}{
	"five fields": {"30 2 * * *", "UTC", "2026-01-01T02:30:00Z", []string{"2026-01-02T02:30:00Z"}},
	"six fields": {"15 30 2 * * *", "UTC", "2026-01-01T02:30:00Z", []string{
		"2026-01-01T02:30:15Z", "2026-01-02T02:30:15Z",
	}},
	"a name of days":   {"0 9 * * MON-FRI", "UTC", "2026-01-02T09:00:00Z", []string{"2026-01-05T09:00:00Z"}},
	"Sunday is 0 or 7": {"0 9 * * 7", "UTC", "2026-01-02T09:00:00Z", []string{"2026-01-04T09:00:00Z"}},
	"a day of the month or of the week": {"0 0 13 * FRI", "UTC", "2026-01-03T00:00:00Z", []string{
		"2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z",
	}},
	"every other day, if it is a Monday": {"0 0 */2 * MON", "UTC", "2026-01-03T00:00:00Z", []string{
		"2026-01-05T00:00:00Z", "2026-01-19T00:00:00Z", "2026-02-09T00:00:00Z",
	}},
	"the 13th, if it is an even day of the week": {"0 0 0 13 * */2", "UTC", "2026-01-14T00:00:00Z", []string{
		"2026-06-13T00:00:00Z",
	}},
	"@daily": {"@daily", "Europe/Berlin", "2026-01-01T00:00:00Z", []string{"2026-01-02T00:00:00+01:00"}},
	"a leap day": {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{
		"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z",
	}},
	"a fraction of a second": {"* * * * * *", "UTC", "2026-01-01T00:00:00.7Z", []string{"2026-01-01T00:00:01Z"}},
	"never":                  {"0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z", []string{""}},

	"spring: a skipped time fires when the gap ends": {"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
		[]string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
	"spring: several skipped times fire once": {"*/15 2 * * *", "Europe/Berlin", "2026-03-29T00:59:00Z",
		[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00", "2026-03-30T02:15:00+02:00"}},
	"spring: a time at the end of the gap fires once": {"0 2,3 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z",
		[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
	"spring: every hour goes on": {"0 * * * *", "Europe/Berlin", "2026-03-28T23:30:00Z",
		[]string{"2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"}},
	"spring: every other hour has no extra time": {"0 */2 * * *", "Europe/Berlin", "2026-03-28T22:30:00Z",
		[]string{"2026-03-29T00:00:00+01:00", "2026-03-29T04:00:00+02:00"}},
	"spring at midnight": {"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z",
		[]string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}},

	"autumn: a repeated time fires the first time": {"30 2 * * *", "Europe/Berlin", "2026-10-24T00:30:00Z",
		[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
	"autumn: from between both": {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z",
		[]string{"2026-10-26T02:30:00+01:00"}},
	"autumn: from the second pass": {"45 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00Z",
		[]string{"2026-10-25T02:45:00+01:00"}},
	"autumn: the hour after": {"0 3 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z",
		[]string{"2026-10-25T03:00:00+01:00", "2026-10-26T03:00:00+01:00"}},
	"autumn: every half hour goes on": {"*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", []string{
		"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00",
		"2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00",
	}},

	"Lord Howe, half an hour forward": {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{
		"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00",
	}},
	"Lord Howe, half an hour back": {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", []string{
		"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30",
	}},
	"Lord Howe, every quarter": {"*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:40:00Z", []string{
		"2026-04-05T01:45:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T01:45:00+10:30",
		"2026-04-05T02:00:00+10:30",
	}},

	"a skipped day": {"0 9 * * *", "Pacific/Apia", "2011-12-29T10:00:00Z", []string{
		"2011-12-29T09:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00",
	}},
	"only on the skipped day": {"0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", []string{
		"2011-12-31T00:00:00+14:00", "2012-12-30T09:00:00+14:00",
	}},
	"another skipped day, hourly": {"0 * 21 8 *", "Pacific/Kwajalein", "1993-08-20T00:00:00Z", []string{
		"1994-08-21T00:00:00+12:00",
	}},
}

func TestTimetable(t *testing.T) {
	t.Parallel()
	for name, row := range timetables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := parseZone(row.zone)
			require.NoError(t, err)
			c, err := parseTimetable(row.expression, zone)
			require.NoError(t, err)
			at, err := time.Parse(time.RFC3339, row.after)
			require.NoError(t, err)
			for _, want := range row.want {
				at = c.next(at)
				if want == "" {
					require.Zero(t, at)
					continue
				}
				require.Equal(t, want, at.Format(time.RFC3339))
			}
		})
	}
}

// unusualZones change their offsets in many ways: by half an hour, two hours or a day, at midnight, or for Ramadan.
var unusualZones = []string{
	"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Tehran",
	"Antarctica/Troll",
}

// Each next time of an expression is after the one before.
func TestTimetablesGoForward(t *testing.T) {
	t.Parallel()
	for _, zone := range unusualZones {
		location, err := parseZone(zone)
		require.NoError(t, err)
		for _, expression := range []string{
			"*/20 * * * *", "30 1 * * *", "30 2 * * *", "0 0 * * *", "59 23 * * *", "0 3,2,1 * * SUN", "@monthly",
		} {
			c, err := parseTimetable(expression, location)
			require.NoError(t, err)
			for _, year := range []int{2011, 2026} {
				at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
				for range 500 {
					next := c.next(at)
					require.True(t, next.After(at), "%s in %s after %s: %s", expression, zone, at, next)
					require.Equal(t, next, c.next(next.Add(-time.Second)), "%s in %s", expression, zone)
					at = next
				}
			}
		}
	}
}

func TestRefusedTimetables(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{
		"", "* * * *", "* * * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8",
		"*/0 * * * *",
		"@every 5m", "@reboot", "TZ=UTC * * * * *", "CRON_TZ=UTC 0 0 * * *", "H * * * *", "a b c d e", "1-60 * * * *",
		"@fortnightly",
	} {
		_, err := parseTimetable(expression, time.UTC)
		require.ErrorIs(t, err, errCron, expression)
	}
	for expression, want := range map[string]string{
		"0 0 L * *": "day of month (field 3)", "0 61 0 1 * *": "minute (field 2)",
		"0 0 1 * MON#2": "day of week (field 5)",
		"0 0":           "5 or 6 fields", "@fortnightly": "5 or 6 fields",
	} {
		_, err := parseTimetable(expression, time.UTC)
		require.ErrorContains(t, err, want)
	}
	for _, zone := range []string{"Local", "Europe/Nowhere", "../etc/passwd", "+02:00"} {
		_, err := parseZone(zone)
		require.ErrorIs(t, err, errZone, zone)
	}
}

// For every expression, zone and time, the search ends. The time that it finds is later, and is also the next time a
// second before itself.
func FuzzTimetable(f *testing.F) {
	for _, expression := range []string{
		"30 2 * * *", "*/15 * * * *", "0 0 29 2 SUN", "15 30 2 * * 1-5", "@monthly", "59 23 L * *", "0 0 1W * ?",
		"* * * * 5#3", "0-59/7 */5 1,2,3 JAN-MAR *",
	} {
		for zone := range unusualZones {
			f.Add(expression, uint8(zone), int64(1_767_225_600+zone*86_400*40))
		}
	}
	f.Fuzz(func(t *testing.T, expression string, zone uint8, after int64) {
		location, err := parseZone(unusualZones[int(zone)%len(unusualZones)])
		require.NoError(t, err)
		c, err := parseTimetable(expression, location)
		if err != nil || len(expression) > maxCron {
			return
		}
		const first, last = -62_000_000_000, 250_000_000_000 // the years 5 and 9892
		at := time.Unix(first+int64(uint64(after)%(last-first)), 0)
		for range 3 {
			next := c.next(at)
			if next.IsZero() {
				return
			}
			require.True(t, next.After(at), "%q after %s: %s", expression, at.In(location), next)
			require.Equal(t, next, c.next(next.Add(-time.Second)), "%q after %s", expression, at.In(location))
			at = next
		}
	})
}
