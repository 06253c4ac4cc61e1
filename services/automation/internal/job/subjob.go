package job

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/work"
)

// The states of a sub-job.
const (
	pending   = "pending"
	running   = "running"
	succeeded = "succeeded"
	failed    = "failed"
	cancelled = "cancelled"
	timedOut  = "timed_out"
)

const (
	maxParts   = 100      // of a run
	maxError   = 2048     // characters
	maxResult  = 64 << 10 // bytes
	keptRuns   = 100      // finished runs of a job that are kept
	keepFor    = 7 * 24 * time.Hour
	maxQueued  = 100  // runs of a job that wait for an earlier one to end
	maxWaiting = 1000 // unfinished runs of a job that allows several
)

// SubJob is a run of a job, or a part that a run splits off. Its JSON form is the API's, the events' and the store's.
type SubJob struct {
	docstore.Meta
	JobID         string         `json:"job_id" readOnly:"true" doc:"The job" example:"1048576"`
	ParentID      string         `json:"parent_id" readOnly:"true" doc:"Of a part: the sub-job that it was split off from; empty for a run"`
	RootID        string         `json:"root_id" readOnly:"true" doc:"The run that it is a part of, or itself" example:"1048577"`
	Name          string         `json:"name" doc:"Of a part; empty for a run"`
	Number        int64          `json:"number" readOnly:"true" doc:"Counts the job's runs from 1; 0 for a part" example:"1"`
	State         string         `json:"state" enum:"pending,running,succeeded,failed,cancelled,timed_out" doc:"How it stands"`
	Attempt       int64          `json:"attempt" readOnly:"true" doc:"Counts its attempts from 1"`
	Progress      int64          `json:"progress" doc:"0…100" example:"50"`
	Payload       jsontext.Value `json:"payload" readOnly:"true" doc:"What it works on: any JSON" example:"{\"full\":true}"`
	Result        jsontext.Value `json:"result" readOnly:"true" doc:"What it ended with: any JSON" example:"{\"rows\":120}"`
	Error         string         `json:"error" readOnly:"true" doc:"Of the last attempt that failed"`
	TimeScheduled clock.Time     `json:"time_scheduled" readOnly:"true" nullable:"true" doc:"The time of the schedule that it fires for; null if it was triggered"`
	TimeStarted   clock.Time     `json:"time_started" readOnly:"true" nullable:"true" doc:"Of the last attempt"`
	TimeFinished  clock.Time     `json:"time_finished" readOnly:"true" nullable:"true" doc:"null: not yet"`
}

const (
	byJob      = "job"
	byParent   = "parent"
	byRoot     = "root"
	byFireTime = "fire_time"
	byNumber   = "number"
)

var subJobs = outbox.Define("sub_job", "/jobs/sub-jobs", docstore.Schema[SubJob]{
	Name: "sub_jobs", Noun: "sub-job",
	Sortable: []string{byTimeCreated},
	Indexes: []docstore.Index[SubJob]{
		docstore.ByText(byJob, func(s *SubJob) string { return s.JobID }),
		docstore.ByText(byParent, func(s *SubJob) string { return s.ParentID }),
		docstore.ByText(byRoot, func(s *SubJob) string { return s.RootID }),
		docstore.ByText(byState, func(s *SubJob) string { return s.State }),
		docstore.ByText(byNumber, func(s *SubJob) string { return runNumber(s.JobID, s.Number) }),
		// A time of a job's schedule fires once.
		docstore.Unique(docstore.ByText(byFireTime, func(s *SubJob) string {
			if s.TimeScheduled.IsZero() {
				return ""
			}
			return fmt.Sprintf("%s/%d", s.JobID, s.TimeScheduled.Millis())
		}), "time_scheduled"),
		docstore.ByNumber(byTimeCreated, func(s *SubJob) docstore.Value { return docstore.Moment(s.TimeCreated) }),
	},
	Due: func(s *SubJob) clock.Time {
		if s.ParentID != "" || s.TimeFinished.IsZero() {
			return clock.Time{}
		}
		return s.TimeFinished.Add(keepFor)
	},
})

// runNumber is the key that sorts a job's runs; "" for a part.
func runNumber(job string, number int64) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("%s/%016d", job, number)
}

// SubDoc is a sub-job as read or written.
type SubDoc = docstore.Doc[SubJob]

func (s *SubJob) isOver() bool { return !s.TimeFinished.IsZero() }

// run says what is to be done about an unfinished sub-job. It exists until the sub-job is over.
type run struct {
	work.Item            // the id is the sub-job's; Next is when the phase's action is due, zero for none
	JobID     string     `json:"job_id"`
	Part      bool       `json:"part"` // the platform does not run it; its worker reports it
	Phase     phase      `json:"phase"`
	Deadline  clock.Time `json:"deadline"`
	Logs      int64      `json:"logs"`  // number of log lines of the run and its parts
	Parts     int64      `json:"parts"` // number of the run's parts

	// Of the attempt that this replica makes.
	call    Call
	outcome Outcome
	failure error
}

// phase says what an unfinished sub-job waits for, and what happens at run.Next.
type phase string

const (
	queued   phase = "queued"   // it waits for another run of its job; Next is zero
	ready    phase = "ready"    // a replica claims it at Next
	leased   phase = "leased"   // a replica runs it; its lease ends at Next
	accepted phase = "accepted" // a worker has it; the time for its result ends at Next, or never if it is a part
)

const (
	byActive = "active"
	byQueued = "queued"
)

var runs = work.Define(docstore.Schema[run]{
	Name: "job_runs", Noun: "run", NoIfMatch: true,
	Indexes: []docstore.Index[run]{
		docstore.ByText(byActive, func(r *run) string {
			if r.Part {
				return ""
			}
			return r.JobID
		}),
		docstore.ByText(byQueued, func(r *run) string {
			if r.Phase != queued {
				return ""
			}
			return r.JobID
		}),
	},
})
