package rpc

import (
	"sync"
	"time"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

const (
	firstMessageTimeout = 30 * time.Second
	// While more than maxFirstMessages calls wait for their requests, each may take at most manyFirstMessagesTimeout.
	maxFirstMessages         = 512
	manyFirstMessagesTimeout = 2 * time.Second
)

var defaultFirstMessage = admission.FirstMessageLimits{
	Timeout: firstMessageTimeout, Many: maxFirstMessages, ManyTimeout: manyFirstMessagesTimeout,
}

// firstMessages ends calls whose request does not arrive: a client may send a part of it and then nothing. Streams on which the
// client sends many messages are left alone: clients keep idle ones, and other bounds limit their number.
type firstMessages struct {
	*admission.FirstMessages
	closing sync.Once
	stop    chan struct{}
	running sync.WaitGroup
}

func newFirstMessages(limits admission.FirstMessageLimits) *firstMessages {
	f := &firstMessages{FirstMessages: admission.NewFirstMessages(limits), stop: make(chan struct{})}
	f.running.Go(func() { f.Run(f.stop) })
	return f
}

func (f *firstMessages) close() {
	f.closing.Do(func() { close(f.stop) })
	f.running.Wait()
}

// collect shows the number of calls that wait for their first message.
func (f *firstMessages) collect(e *metrics.Emitter) {
	waiting, ended := f.Counts()
	e.Gauge("quorate_calls_unsent", "Calls whose request has not arrived yet.", float64(waiting))
	e.Counter("quorate_calls_unsent_ended_total", "Calls that were ended because their request did not arrive.", float64(ended))
}
