package peercall

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
)

// Method is one request: its name on the wire, and how question and answer are encoded.
type Method[Q, A any] struct {
	Name string
	// Fenced methods are answered only by a leader that has the configuration of the member that asks.
	Fenced   bool
	Question Codec[Q]
	Answer   Codec[A]
	// MostAnswer is how many bytes an answer has at most, also one that is an error. A larger one is not sent, nor read.
	MostAnswer int
}

// Table has the methods that a member answers.
type Table struct {
	faults Faults
	fence  func(ctx context.Context, asks consensus.ConfigID) error
	served map[string]*served
}

// served is a method that is answered.
type served struct {
	here any // func(context.Context, Q) (A, error)
	wire func(ctx context.Context, body []byte) ([]byte, error)
}

// NewTable returns an empty table. fence fails at a member that does not lead, or does not have a configuration yet.
func NewTable(faults Faults, fence func(ctx context.Context, asks consensus.ConfigID) error) *Table {
	return &Table{faults: faults, fence: fence, served: map[string]*served{}}
}

// Serve adds a method to the table; here answers it.
func Serve[Q, A any](t *Table, m *Method[Q, A], here func(context.Context, Q) (A, error)) {
	t.served[m.Name] = &served{here: here, wire: func(ctx context.Context, body []byte) ([]byte, error) {
		answer, err := answerTo(ctx, t, m, here, body)
		if len(answer) > m.MostAnswer {
			return nil, status.Errorf(codes.ResourceExhausted, "peercall: the answer to %s has %d bytes, more than %d", m.Name,
				len(answer), m.MostAnswer)
		}
		return answer, err
	}}
}

func answerTo[Q, A any](
	ctx context.Context, t *Table, m *Method[Q, A], here func(context.Context, Q) (A, error), body []byte,
) ([]byte, error) {
	asked, err := t.open(ctx, m.Fenced, body)
	if err != nil {
		return t.answerError(err)
	}
	q, err := m.Question.Decode(asked)
	if err != nil {
		return nil, malformed(err)
	}
	a, err := here(ctx, q)
	if err != nil {
		return t.answerError(err)
	}
	return m.Answer.Append([]byte{0}, a)
}

// open checks the configuration in the body of a fenced method, and returns the question behind it.
func (t *Table) open(ctx context.Context, fenced bool, body []byte) ([]byte, error) {
	if !fenced {
		return body, nil
	}
	id, rest, err := decodeFence(body)
	if err != nil {
		return nil, malformed(err)
	}
	return rest, t.fence(ctx, id)
}

func (t *Table) answerError(err error) ([]byte, error) {
	if told, found := t.faults.append(nil, err); found {
		return told, nil
	}
	var call *callError
	if errors.As(err, &call) && !misunderstood(call) {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return nil, err
	}
	return nil, status.FromContextError(err).Err() // else of code Unknown
}

// Answer answers a request that came from another process; known is false for one that is not in the table.
func (t *Table) Answer(ctx context.Context, method string, body []byte) (answer []byte, known bool, err error) {
	s, known := t.served[method]
	if !known {
		return nil, false, nil
	}
	answer, err = s.wire(ctx, body)
	return answer, true, err
}

// Encode returns the body of a question.
func Encode[Q, A any](m *Method[Q, A], config consensus.ConfigID, q Q) ([]byte, error) {
	var body []byte
	if m.Fenced {
		body = appendFence(body, config)
	}
	return m.Question.Append(body, q)
}

// Decode returns the value in an answer, or the error.
func Decode[Q, A any](faults Faults, m *Method[Q, A], body []byte) (answer A, err error) {
	switch {
	case len(body) == 0:
		return answer, malformed(errCut)
	case body[0] != 0:
		return answer, faults.decode(body[0], body[1:])
	}
	if answer, err = m.Answer.Decode(body[1:]); err != nil {
		return answer, malformed(err)
	}
	return answer, nil
}
