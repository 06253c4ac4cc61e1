// Package work carries out durable work: items that a service stores in the transaction in which they become necessary,
// and that one of its replicas carries out later.
//
//	       stored with Next
//	              │
//	              ▼
//	  ┌──────▶ waiting ◀─────────────────────────┐
//	  │           │ due, and there is a place    │ Retry: after a pause
//	  │           ▼                              │ NotStarted: the attempt does not count
//	  │        claimed ──────▶ Do ───────────────┘
//	  │           │ the replica       │
//	  │           │ has died          ├─▶ Done: deleted
//	  └───────────┘                   └─▶ GiveUp, or no attempt is left: deleted
//	the lease has ended
//
// # What it promises
//
//   - kill -9: an item that was claimed is due again when its lease has ended, after at most 30 s, and the attempt
//     counts. So Do must be idempotent: an item may be carried out again although it has succeeded. An item whose
//     replica died in each attempt is given up (Lost).
//   - Two replicas: a claim is a transaction, so only one of them carries out an attempt. It renews its lease while the
//     attempt goes on. A replica that has lost the lease, or cannot renew it in time, breaks the attempt off. What
//     becomes of an attempt is stored only if no other replica has claimed the item since (what With adds, always,
//     unless the item was deleted).
//   - The end of the process: the contexts of running attempts are cancelled after Grace. If Do then returns Retry or
//     NotStarted, whatever the error, the attempt does not count, and the item is due at once.
//   - A store that is away: attempts go on until their leases end; an item whose outcome cannot be stored is due again
//     then.
//     An item that cannot be claimed is tried again after longer and longer pauses, and delays no others.
//   - A slow or busy tenant: tenants take turns, and each has at most its share of the places of a replica. Within a
//     tenant, what Turn names takes turns. An attempt that only waits for an answer can leave its place to another.
//   - Much work: items of a tenant can be claimed, and their outcomes stored, together in one transaction. One that
//     cannot be is then tried alone, and delays no others.
//
// The metric idp_work_attempts_total tells what became of attempts, by work: done, retry, given_up, not_started, over
// if the lease was lost, and not_claimed for an item that could not be claimed. The log has each failure, and each item
// that is given up.
//
// Items that clients see and change, such as runs of jobs, have States of their own: the service says in the same
// transactions which items begin and what becomes of them.
//
// # Words
//
// An item is a stored document that embeds Item. It is due at Next. An attempt begins with a claim, which holds a lease
// until Next. Its end is an Outcome. A place is the right to run one attempt in this replica; a
// tenant's share of them is Places.OfTenant. All times are those of the store's clock.
//
// # Use
//
//	type report struct {
//		work.Item
//		Month string `json:"month"`
//	}
//
//	var reports = work.Define(docstore.Schema[report]{Name: "reports", Noun: "report"})
//
//	// in service.Spec.Collections: reports.Def()
//
//	// in the transaction in which it becomes necessary:
//	reports.Insert(ctx, tx, &report{Item: work.New(tx.Now), Month: "2026-11"})
//
//	// in service.App.Tasks:
//	queue := work.NewQueue(work.Config[report]{
//		Name: "send reports", Items: reports, Store: store, Log: log, Metrics: metrics,
//		Places: fair.Limits{Most: 8, OfTenant: 4}, Time: time.Minute,
//		Attempts: 5, Pause: func(attempt int64) time.Duration { return time.Duration(attempt) * time.Minute },
//		Do: func(ctx context.Context, r *report) work.Outcome { return work.DoneOr(send(ctx, r.Month)) },
//	})
//	service.QueueTask(queue.Name, queue)
//
// For work that recurs, a service.Task stores the next item of each tenant, with an id made of what it is about
// ("2026-12"): so two replicas store one. Storing an id that is taken fails with a *docstore.DuplicateError. What Do
// stores it must expect to find, since an earlier attempt may have stored it.
package work
