// Package job schedules jobs and runs them. Each run of a job is a sub-job. A replica claims a run and holds a lease on
// it, which it renews while it calls the job's target.
package job
