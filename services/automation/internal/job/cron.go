package job

import (
	"errors"
	"strings"
	"time"
	_ "time/tzdata" // a container image may have no time zones

	"github.com/netresearch/go-cron"
)

// timetable is a cron expression in a time zone.
//
// The library gets wall-clock times as times in UTC, which has no changes of the offset. The changes of the zone (such
// as to daylight-saving time) are handled here, with these rules: a wall-clock time that a change skips fires right
// after the change, once for all times that it skips. A wall-clock time that a change repeats fires the first time. An
// expression whose hours begin with * fires by elapsed time instead: a skipped hour does not fire, a repeated one fires
// twice.
type timetable struct {
	expression cron.Schedule
	zone       *time.Location
	hourly     bool // the hours begin with *
}

var cronParser = cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.DowOrDom | cron.Descriptor)

var (
	errCron = errors.New("must be a cron expression with 5 or 6 fields (seconds first), or @hourly, @daily, @weekly, " +
		"@monthly or @yearly")
	errNever = errors.New("never fires")
	errZone  = errors.New("must be an IANA time zone such as Europe/Berlin")
)

// parseZone finds the time zone of an IANA name; "" is UTC. The error is errZone.
func parseZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errZone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errZone
	}
	return zone, nil
}

// parseTimetable parses an expression, which may be one that never fires. The error is errCron.
func parseTimetable(expression string, zone *time.Location) (*timetable, error) {
	expression = strings.TrimSpace(expression)
	fields := strings.Fields(expression)
	if len(fields) == 0 || strings.Contains(fields[0], "=") || fields[0] == "@every" || fields[0] == "@reboot" {
		return nil, errCron
	}
	parsed, err := cronParser.Parse(expression)
	if err != nil {
		return nil, errCron
	}
	hours := "*" // of @hourly
	switch {
	case len(fields) == 6:
		hours = fields[2]
	case len(fields) == 5:
		hours = fields[1]
	case fields[0] != "@hourly":
		hours = "0"
	}
	return &timetable{parsed, zone, strings.HasPrefix(hours, "*")}, nil
}

// next returns the first time to fire after t, or the zero time if the library finds none in the years that it
// searches.
func (c *timetable) next(t time.Time) time.Time {
	t = t.In(c.zone).Truncate(time.Second)
	for range maxChanges {
		_, end := t.ZoneBounds()            // the offset stays the same until end
		if !end.IsZero() && !end.After(t) { // a result that Go gives at the ends of years after 2037
			end = t.Add(24 * time.Hour)
		}
		_, offset := t.Zone()
		wall := wallClock(t, offset)
		match := c.expression.Next(wall)
		if match.IsZero() {
			return time.Time{}
		}
		if found := match.Add(-time.Duration(offset) * time.Second); end.IsZero() || found.Before(end) {
			return found.In(c.zone)
		}
		_, after := end.Zone()
		before := wallClock(end, offset) // what clocks show at the change, and what they are set to
		shown := wallClock(end, after)
		switch {
		case !c.hourly && match.Before(shown): // the change skips it
			return end
		case !c.hourly && shown.Before(before): // the change repeats the times between shown and before
			t = end.Add(before.Sub(shown) - time.Second)
			if found := c.expression.Next(before.Add(-time.Second)); found.Equal(before) {
				return end.Add(before.Sub(shown))
			}
		default:
			if found := c.expression.Next(shown.Add(-time.Second)); found.Equal(shown) {
				return end
			}
			t = end
		}
	}
	return time.Time{}
}

// maxChanges bounds the search. Zones change their offset a few times a year, and the library looks some years ahead.
const maxChanges = 400

// wallClock is what clocks with an offset (seconds) show at t, as a time in UTC.
func wallClock(t time.Time, offset int) time.Time {
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
