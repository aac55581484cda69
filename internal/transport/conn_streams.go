package transport

import "sync"

const (
	frameOfHeaders      = 1 // types of frames (RFC 9113, section 6)
	frameOfReset        = 3
	frameOfContinuation = 9
	flagEndStream       = 1

	// openStreamBytes is what gRPC keeps of a stream for as long as it is open on the connection, also after its handler has
	// ended, beside the headers, of which each byte may take headerTimes when it is unpacked.
	openStreamBytes = 8 << 10
	headerTimes     = 4
)

// openStreams counts what gRPC keeps for a connection: of each stream that is open, and of answers that have not left. A client
// whose windows are closed keeps them there after their handlers have ended.
type openStreams struct {
	hold func(more int64)

	mu      sync.Mutex
	open    map[uint32]int64 // what is counted of a stream
	answers int64            // bytes that were handed to gRPC and have not left, of open streams
}

func newOpenStreams(hold func(more int64)) *openStreams {
	return &openStreams{hold: hold, open: map[uint32]int64{}}
}

// arrived takes the head of a frame of the client.
func (o *openStreams) arrived(kind, _ byte, stream uint32, length int) {
	switch kind {
	case frameOfHeaders, frameOfContinuation:
		more := int64(headerTimes * length)
		o.mu.Lock()
		if _, known := o.open[stream]; !known {
			more += openStreamBytes
		}
		o.open[stream] += more
		o.mu.Unlock()
		o.hold(more)
	case frameOfReset:
		o.end(stream)
	}
}

// left takes the head of a frame to the client.
func (o *openStreams) left(kind, flags byte, stream uint32, _ int) {
	if kind == frameOfReset || kind <= frameOfHeaders && flags&flagEndStream != 0 {
		o.end(stream)
	}
}

// answer counts bytes that are handed to gRPC.
func (o *openStreams) answer(bytes int64) {
	o.mu.Lock()
	if len(o.open) == 0 { // its stream was reset meanwhile
		bytes = 0
	}
	o.answers += bytes
	o.mu.Unlock()
	o.hold(bytes)
}

// sent counts bytes of answers that have left.
func (o *openStreams) sent(bytes int64) {
	o.mu.Lock()
	bytes = min(bytes, o.answers)
	o.answers -= bytes
	o.mu.Unlock()
	if bytes > 0 {
		o.hold(-bytes)
	}
}

// end counts a stream no more. The bytes that were still to be sent on a stream that was reset are not known: they count until
// no stream is open.
func (o *openStreams) end(stream uint32) {
	o.mu.Lock()
	less := o.open[stream]
	delete(o.open, stream)
	if len(o.open) == 0 {
		less += o.answers
		o.answers = 0
	}
	o.mu.Unlock()
	if less > 0 {
		o.hold(-less)
	}
}

// endAll counts nothing any more: the connection is closed.
func (o *openStreams) endAll() {
	o.mu.Lock()
	less := o.answers
	for _, bytes := range o.open {
		less += bytes
	}
	clear(o.open)
	o.answers = 0
	o.mu.Unlock()
	o.hold(-less)
}
