// Package job schedules jobs and runs them: each run is a sub-job, which a replica claims for as long as its lease
// holds.
package job
