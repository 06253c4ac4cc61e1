package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var jobView = output.View{
	Columns: []output.Column{
		output.MemberColumn("code"), output.MemberColumn("name"), {Title: "SCHEDULE", Of: scheduleOf},
		{Title: "TARGET", Of: targetOf}, {Title: "STATE", Of: jobState}, timeColumn("NEXT", "next_fire_time"),
	},
	Wide: columns("id", "concurrency", "misfire", "timeout_seconds", "last_sub_job_id", "description"),
	Name: "code",
}

// scheduleOf says when a job fires.
func scheduleOf(job output.Object) string {
	switch kind := job.Text("schedule.type"); kind {
	case "cron":
		return strings.TrimSpace(job.Text("schedule.cron") + " " + job.Text("schedule.timezone"))
	case "interval":
		return "every " + job.Text("schedule.every_seconds") + " s"
	case "once":
		return "at " + job.Text("schedule.at")
	default:
		return kind
	}
}

func targetOf(job output.Object) string {
	for _, member := range []string{"url", "subject", "function_id"} {
		if text := job.Text("target." + member); text != "" {
			return job.Text("target.type") + " " + text
		}
	}
	return job.Text("target.type")
}

func jobState(job output.Object) string {
	if job.Text("status") == "0" {
		return "disabled"
	}
	return job.Text("state")
}

// jobs makes the commands for scheduled jobs and their runs.
func jobs(a *App) *cobra.Command {
	of := a.like(operation{
		view: jobView, arguments: 1, path: firstOf(jobKind.id), complete: a.words(jobKind.known()),
	})
	return group("jobs", "Scheduled jobs and their runs: create, trigger, follow, suspend",
		of(operation{
			use: "list", short: "List jobs", operation: "list-jobs", path: noPath,
			example: "  idp jobs list --state suspended",
		}),
		of(operation{
			use: "get JOB", short: "Show a job", operation: "get-job", example: "  idp jobs get nightly",
		}),
		writeJob(a, operation{
			use: "create CODE", short: "Create a job", operation: "create-job", path: noPath,
			example: "  idp jobs create nightly --cron '0 3 * * *' --timezone Asia/Shanghai --function sync\n" +
				"  idp jobs create ping --every 5m --url https://acme.test/ping --concurrency skip\n" +
				"  idp jobs create cleanup --subject jobs.cleanup",
		}),
		writeJob(a, operation{
			use: "update JOB", short: "Change members of a job", operation: "update-job", path: firstOf(jobKind.id),
			complete: a.words(jobKind.known()),
			example: "  idp jobs update nightly --cron '30 2 * * *'\n" +
				"  idp jobs update nightly -F retry.max=3 --dry-run",
		}),
		of(operation{
			use: "delete JOB", short: "Delete a job, with its runs", operation: "delete-job",
			example: "  idp jobs delete nightly --yes",
		}),
		triggerJob(a),
		of(operation{
			use: "suspend JOB", short: "Let a job not fire until it is resumed", operation: "suspend-job",
			example: "  idp jobs suspend nightly",
		}),
		of(operation{
			use: "resume JOB", short: "Let a suspended job fire again", operation: "resume-job",
			example: "  idp jobs resume nightly",
		}),
		of(operation{
			use: "runs JOB", short: "List the runs of a job", operation: "list-sub-jobs", view: runView,
			example: "  idp jobs runs nightly\n  idp jobs runs nightly --state failed",
		}),
		cancelRun(a), jobLogs(a),
		of(operation{
			use: "fire-times JOB", short: "Show when a job fires next", operation: "get-job-fire-times",
			view: output.View{
				Items: "fire_times", Columns: []output.Column{{Title: "FIRES AT", Of: valueOf}}, Name: "value",
			},
			example: "  idp jobs fire-times nightly --count 5",
		}),
	)
}

// valueOf is the item of a list of plain values.
func valueOf(item output.Object) string { return item.Text("value") }

// writeJob completes a command that writes a job by flags for its schedule and its target.
func writeJob(a *App, spec operation) *cobra.Command {
	f := &jobFlags{isNew: spec.operation == "create-job"}
	spec.view, spec.arguments, spec.without = jobView, 1, []string{"code", "id", "schedule", "target"}
	spec.flags = func(command *cobra.Command) {
		f.add(command)
		a.completeFlag(command, "function", functionKind.known())
	}
	spec.body = f.body
	return a.operation(spec)
}

// jobFlags say when a job fires, and what it runs.
type jobFlags struct {
	isNew                               bool
	cron, at, timezone                  string
	every                               time.Duration
	address, subject, function, payload string
}

func (f *jobFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.cron, "cron", "", "fire at the times of a cron expression, or @daily and the like")
	flags.StringVar(&f.timezone, "timezone", "", "of --cron, such as Asia/Shanghai")
	flags.DurationVar(&f.every, "every", 0, "fire at intervals: 30s, 5m, 24h")
	flags.StringVar(&f.at, "at", "", "fire once, at a time in RFC 3339; without any of these it is triggered by hand")
	flags.StringVar(&f.function, "function", "", "call a function")
	flags.StringVar(&f.address, "url", "", "call a webhook")
	flags.StringVar(&f.subject, "subject", "", "publish to a NATS subject")
	flags.StringVar(&f.payload, "payload", "", "JSON that the target gets, or @file")
	command.MarkFlagsMutuallyExclusive("cron", "every", "at")
	command.MarkFlagsMutuallyExclusive("function", "url", "subject")
}

func (f *jobFlags) body(ctx context.Context, s *session.Session, args []string, body members) error {
	if f.timezone != "" && f.cron == "" {
		return failure.Usagef("--timezone is for --cron")
	}
	schedule := f.schedule()
	target, err := f.target(ctx, s)
	if err != nil {
		return err
	}
	if f.isNew {
		if len(target) == 0 && body["target"] == nil {
			return failure.Usagef("a job needs a target: --function, --url or --subject")
		}
		if err := codeAndName(ctx, s, args, body); err != nil {
			return err
		}
	} else { // what belongs to another type goes
		schedule.onlyType("cron", "timezone", "every_seconds", "at")
		target.onlyType("function_id", "url", "secret", "subject")
	}
	for name, value := range map[string]members{"schedule": schedule, "target": target} {
		if len(value) > 0 && (!f.isNew || body[name] == nil) {
			body[name] = value
		}
	}
	return nil
}

func (f *jobFlags) schedule() members {
	schedule := members{}
	switch {
	case f.cron != "":
		schedule["type"], schedule["cron"] = "cron", f.cron
		if f.timezone != "" {
			schedule["timezone"] = f.timezone
		}
	case f.every > 0:
		schedule["type"], schedule["every_seconds"] = "interval", int64(f.every.Seconds())
	case f.at != "":
		schedule["type"], schedule["at"] = "once", f.at
	case f.isNew:
		schedule["type"] = "manual"
	}
	return schedule
}

func (f *jobFlags) target(ctx context.Context, s *session.Session) (members, error) {
	target := members{}
	switch {
	case f.function != "":
		id, err := functionKind.id(ctx, s, f.function)
		if err != nil {
			return nil, err
		}
		target["type"], target["function_id"] = "function", id
	case f.address != "":
		target["type"], target["url"] = "webhook", f.address
	case f.subject != "":
		target["type"], target["subject"] = "nats", f.subject
	}
	if f.payload != "" {
		value, err := jsonValue(s, "--payload", f.payload)
		if err != nil {
			return nil, err
		}
		target["payload"] = value
	}
	return target, nil
}

// onlyType makes a merge patch that sets the type remove the members of other types.
func (m members) onlyType(all ...string) {
	if m["type"] == nil {
		return
	}
	for _, name := range all {
		if _, set := m[name]; !set {
			m[name] = nil
		}
	}
}

// jsonValue reads JSON of a flag: the text itself, @file, or - for standard input.
func jsonValue(s *session.Session, flag, text string) (json.RawMessage, error) {
	value, err := read(s, text)
	if err != nil {
		return nil, err
	}
	if !json.Valid(value) {
		return nil, failure.Usagef("%s must be JSON: a text is in quotation marks, as in '\"text\"'", flag)
	}
	return value, nil
}

func triggerJob(a *App) *cobra.Command {
	payload, follows := "", false
	command := &cobra.Command{
		Use: "trigger JOB", Short: "Run a job now", Args: exactly(1), ValidArgsFunction: a.words(jobKind.known()),
		Long: "Run a job now. With --follow its log is printed until it ends, and the exit code is 0 if it\n" +
			"succeeded and 10 if it did not. After Ctrl-C the run goes on.\n\nScope: jobs:write",
		Example: "  idp jobs trigger nightly\n  idp jobs trigger nightly --follow --payload '{\"day\":\"2026-01-31\"}'",
	}
	command.Flags().StringVar(&payload, "payload", "", "JSON that the target gets instead of the job's, or @file")
	command.Flags().BoolVar(&follows, "follow", false, "print the log until the run ends")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		id, err := jobKind.id(ctx, s, args[0])
		if err != nil {
			return err
		}
		body := members{}
		if payload != "" {
			if body["payload"], err = jsonValue(s, "--payload", payload); err != nil {
				return err
			}
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		call := &session.Call{
			Operation: session.Operation("trigger-job"), Path: []string{id}, Body: text, View: runView,
		}
		if !follows || s.DryRun || s.Curl {
			return s.Run(ctx, call)
		}
		answer, err := s.Body(ctx, call)
		if err != nil {
			return err
		}
		value, err := output.Parse(answer)
		run, _ := value.(output.Object)
		if err != nil || run.Text("id") == "" {
			return fmt.Errorf("the answer is not as documented: %w", err)
		}
		return follow(ctx, s, id, run)
	})
	return command
}

func cancelRun(a *App) *cobra.Command {
	return a.operation(operation{
		use: "cancel JOB [RUN]", short: "Cancel a run, or the only one that is unfinished",
		operation: "cancel-sub-job", view: runView, arguments: oneOrTwo,
		complete: a.words(jobKind.known(), known{"no", noWords}),
		path: func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
			job, run, err := findRun(ctx, s, args, unfinished)
			return []string{job, run.Text("id")}, err
		},
		example: "  idp jobs cancel nightly\n  idp jobs cancel nightly 12",
	})
}

func jobLogs(a *App) *cobra.Command {
	follows := false
	command := a.operation(operation{
		use: "logs JOB [RUN]", short: "Print the log of a run, or of the last one", operation: "list-sub-job-logs",
		view: logView, arguments: oneOrTwo, complete: a.words(jobKind.known(), known{"no", noWords}),
		path: func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
			job, run, err := findRun(ctx, s, args, anyState)
			return []string{job, run.Text("id")}, err
		},
		flags: func(command *cobra.Command) {
			command.Flags().BoolVar(&follows, "follow", false, "print it until the run ends; exit code 10 if it fails")
		},
		example: "  idp jobs logs nightly\n  idp jobs logs nightly 12 --follow",
	})
	once := command.RunE
	live := a.run(func(ctx context.Context, s *session.Session, args []string) error {
		job, run, err := findRun(ctx, s, args, anyState)
		if err != nil {
			return err
		}
		return follow(ctx, s, job, run)
	})
	command.RunE = func(command *cobra.Command, args []string) error {
		if follows {
			return live(command, args)
		}
		return once(command, args)
	}
	return command
}
