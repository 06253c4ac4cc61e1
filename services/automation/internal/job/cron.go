package job

import (
	"errors"
	"fmt"
	"slices"
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

// A day fires if its day of the month or its day of the week does. If one of these fields begins with *, also as in
// */2, both must, as in Vixie cron.
var eitherDay, bothDays = cronParser(cron.DowOrDom), cronParser(0)

func cronParser(options cron.ParseOption) cron.Parser {
	return cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
		cron.Descriptor | options)
}

// cronFields are the names of an expression's fields.
var cronFields = []string{"second", "minute", "hour", "day of month", "month", "day of week"}

// errCron is the error of every expression that is not understood.
var errCron = errors.New("must be a cron expression")

var (
	errForm = fmt.Errorf("%w with 5 or 6 fields (seconds first), or @hourly, @daily, @weekly, @monthly or @yearly",
		errCron)
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

// parseTimetable parses an expression, which may be one that never fires. The error wraps errCron.
func parseTimetable(expression string, zone *time.Location) (*timetable, error) {
	expression = strings.TrimSpace(expression)
	fields := strings.Fields(expression)
	if len(fields) == 0 || strings.Contains(fields[0], "=") || fields[0] == "@every" || fields[0] == "@reboot" {
		return nil, errForm
	}
	parser := eitherDay
	if n := len(fields); n >= 5 && (strings.HasPrefix(fields[n-3], "*") || strings.HasPrefix(fields[n-1], "*")) {
		parser = bothDays
	}
	parsed, err := parser.Parse(expression)
	if err != nil {
		return nil, explainCron(fields)
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

// explainCron finds the field that is not understood.
func explainCron(fields []string) error {
	if len(fields) != 5 && len(fields) != 6 {
		return errForm
	}
	names := cronFields[len(cronFields)-len(fields):]
	for i, field := range fields {
		alone := slices.Repeat([]string{"*"}, len(fields))
		alone[i] = field
		if _, err := bothDays.Parse(strings.Join(alone, " ")); err != nil {
			return fmt.Errorf("%w, and its %s (field %d) is not understood: numbers in range, names, *, lists, ranges "+
				"and steps are; L, W, # and ? are not", errCron, names[i], i+1)
		}
	}
	return errForm
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
