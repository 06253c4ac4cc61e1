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
//   - kill -9: an item that was claimed is due again when its lease has ended, and the attempt counts. So Do must be
//     idempotent: an item may be carried out again although it has succeeded. An item whose replica died in each
//     attempt is given up (Lost).
//   - Two replicas: a claim is a transaction, so only one of them carries out an attempt. What becomes of an attempt is
//     stored only if no other replica has claimed the item since.
//   - The end of the process: the contexts of running attempts are cancelled after Grace. An attempt that is cut short
//     does not count, and its item is due at once.
//   - A store that is away: attempts go on; if an outcome cannot be stored, the item is due again when its lease ends.
//     An item that cannot be claimed is tried again after longer and longer pauses, and delays no others.
//   - A slow or busy tenant: tenants take turns, and each has at most its share of the places of a replica. Within a
//     tenant, what Turn names takes turns.
//
// # Words
//
// An item is a stored document that embeds Item. It is due at Next. An attempt begins with a claim, which holds a lease
// until Next. Its end is an Outcome. A place is the right to run one attempt in this replica.
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
//	service.Lasting(queue.Name, queue.Run)
package work
