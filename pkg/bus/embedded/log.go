package embedded

import (
	"fmt"
	"log/slog"
	"sync/atomic"
)

// logger passes the server's log to slog. The server's notices, about thirty at every start, are logged at debug level.
type logger struct {
	log   *slog.Logger
	fatal atomic.Pointer[string]
}

func (l *logger) Noticef(format string, v ...any) { l.log.Debug("NATS: " + fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.log.Warn("NATS: " + fmt.Sprintf(format, v...)) }
func (l *logger) Errorf(format string, v ...any)  { l.log.Error("NATS: " + fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(string, ...any)           {}
func (l *logger) Tracef(string, ...any)           {}

// Fatalf must not end the process. It only records why the server will not get ready.
func (l *logger) Fatalf(format string, v ...any) {
	message := fmt.Sprintf(format, v...)
	l.fatal.CompareAndSwap(nil, &message)
	l.log.Error("NATS: " + message)
}
