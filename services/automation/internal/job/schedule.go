package job

import (
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
)

// The types of a schedule.
const (
	cronType = "cron"
	interval = "interval"
	once     = "once"
	manual   = "manual"
)

// Schedule says when a job fires. A member that is not of its type is absent.
type Schedule struct {
	Type         string     `json:"type" enum:"cron,interval,once,manual" doc:"cron: at times of a calendar; interval: again and again; once: at a time; manual: only when triggered"`
	Cron         string     `json:"cron,omitempty" doc:"For cron: the expression" example:"30 2 * * MON-FRI"`
	Timezone     string     `json:"timezone,omitempty" doc:"For cron: an IANA name; UTC if absent" example:"Europe/Berlin"`
	EverySeconds int64      `json:"every_seconds,omitempty" doc:"For interval: counted from when the schedule was set or the job resumed"`
	At           clock.Time `json:"at,omitzero" doc:"For once: the time"`
}

const (
	maxCron    = 256                  // bytes
	maxSeconds = 10 * 365 * 24 * 3600 // of an interval: ten years
)

// check notes faults. The time of a kept schedule may have passed.
func (s *Schedule) check(faults *apperr.Faults, now clock.Time, before Schedule) {
	types := []string{cronType, interval, once, manual}
	if !slices.Contains(types, s.Type) {
		faults.Add("type", "must be cron, interval, once or manual")
		return
	}
	only := func(of string, set bool, member string) {
		faults.Check(!set || s.Type == of, member, "is only for type %s", of)
	}
	only(cronType, s.Cron != "", "cron")
	only(cronType, s.Timezone != "", "timezone")
	only(interval, s.EverySeconds != 0, "every_seconds")
	only(once, !s.At.IsZero(), "at")
	switch s.Type {
	case cronType:
		s.checkCron(faults, now)
	case interval:
		faults.Check(s.EverySeconds >= 1 && s.EverySeconds <= maxSeconds, "every_seconds", "must lie in 1…%d",
			maxSeconds)
	case once:
		faults.Check(!s.At.IsZero(), "at", "is missing")
		faults.Check(s.At.IsZero() || s.At.After(now) || *s == before, "at", "must not have passed")
	}
}

func (s *Schedule) checkCron(faults *apperr.Faults, now clock.Time) {
	zone, err := parseZone(s.Timezone)
	if err != nil {
		faults.Add("timezone", "%s", err)
		zone = time.UTC
	}
	faults.Check(len(s.Cron) <= maxCron, "cron", "must have at most %d bytes", maxCron)
	timetable, err := parseTimetable(s.Cron, zone)
	if err == nil && timetable.next(now.Std()).IsZero() {
		err = errNever
	}
	if err != nil {
		faults.Add("cron", "%s", err)
	}
}

// next returns the first time to fire after t, or the zero time if there is none. Intervals are counted from since.
func (s *Schedule) next(since, t clock.Time) clock.Time {
	switch s.Type {
	case cronType:
		zone, err := parseZone(s.Timezone)
		if err != nil {
			return clock.Time{}
		}
		timetable, err := parseTimetable(s.Cron, zone)
		if err != nil {
			return clock.Time{}
		}
		return clock.Of(timetable.next(t.Std()))
	case interval:
		every := time.Duration(s.EverySeconds) * time.Second
		if t.Before(since) {
			return since.Add(every)
		}
		return since.Add((t.Sub(since)/every + 1) * every)
	case once:
		if s.At.After(t) {
			return s.At
		}
	}
	return clock.Time{}
}
