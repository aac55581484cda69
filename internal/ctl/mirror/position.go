package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// positionKey is where a target keeps what was copied into it. It begins with a byte that no range of text covers.
const positionKey = "\x00quorate/mirror"

// position says how far a target is. It is the value of positionKey, as JSON.
type position struct {
	Source   string `json:"source"`         // id of the source's cluster, in hexadecimal
	Run      string `json:"run"`            // which mirror wrote it: another one that writes is noticed
	Revision int64  `json:"revision"`       // the target is equal to the source at it, unless Copying
	Part     int    `json:"part,omitempty"` // so many changes of the next revision are made, too
	Copying  bool   `json:"copying,omitempty"`
}

func (p *position) text() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers and text
	}
	return string(text)
}

// Errors of a mirror.
var (
	errTwo = errors.New("another mirror writes into the target: end one of them")
	// errAgain means that the target must be compared with the source once more: history was compacted, or a lease was lost.
	errAgain = errors.New("compare once more")
	errLimit = errors.New("a transaction is too large for the target")
)

// target is the cluster that is written, with the position in it.
type target struct {
	client *clientv3.Client
	at     *position // nil: there is none
	wrote  int64     // the target's revision at which it was written; zero: there is none
	notice func(error)
}

// load reads the position.
func (t *target) load(ctx context.Context) error {
	answer, err := t.client.Get(ctx, positionKey)
	if err != nil {
		return fmt.Errorf("read the position at the target: %w", err)
	}
	if t.at, t.wrote = nil, 0; len(answer.Kvs) == 0 {
		return nil
	}
	t.wrote = answer.Kvs[0].ModRevision
	t.at = &position{}
	if err := json.Unmarshal(answer.Kvs[0].Value, t.at); err != nil {
		return fmt.Errorf("the position at the target, key %q: %w", positionKey, err)
	}
	return nil
}

// write makes changes and the new position in one transaction, and returns the target's revision after it. An answer that
// was lost does no harm: the position tells whether the transaction was done.
func (t *target) write(ctx context.Context, ops []clientv3.Op, next *position) (int64, error) {
	unchanged := clientv3.Compare(clientv3.CreateRevision(positionKey), "=", 0)
	if t.at != nil {
		unchanged = clientv3.Compare(clientv3.Value(positionKey), "=", t.at.text())
	}
	ops = append(ops[:len(ops):len(ops)], clientv3.OpPut(positionKey, next.text()))
	for pause := pauseBegin; ; pause = min(2*pause, pauseEnd) {
		answer, err := t.client.Txn(ctx).If(unchanged).Then(ops...).Else(clientv3.OpGet(positionKey)).Commit()
		switch {
		case err == nil && answer.Succeeded:
			t.at = next
			return answer.Header.Revision, nil
		case err == nil:
			found := answer.Responses[0].GetResponseRange().Kvs
			if len(found) == 1 && string(found[0].Value) == next.text() { // an earlier attempt, whose answer was lost
				t.at = next
				return found[0].ModRevision, nil
			}
			return 0, errTwo
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return 0, errAgain
		case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge),
			err != nil && strings.Contains(err.Error(), rpctypes.ErrRequestTooLarge.Error()): // or more is said with it
			return 0, errLimit
		case !passing(err):
			return 0, fmt.Errorf("write to the target: %w", err)
		}
		t.notice(fmt.Errorf("write to the target: %w", err))
		if err := wait(ctx, pause); err != nil {
			return 0, err
		}
	}
}

// remove ends the mirror: the target has nothing of it any more.
func (t *target) remove(ctx context.Context) error {
	_, err := t.client.Delete(ctx, positionKey)
	return err
}

// How long it takes until something that failed is tried again.
const (
	pauseBegin = 200 * time.Millisecond
	pauseEnd   = 5 * time.Second
	// tick is how often the source is looked at.
	tick = 500 * time.Millisecond
)

func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// passing tells errors that may go away, such as a leader that is missing or a full disk, from those that will not.
func passing(err error) bool {
	var answer rpctypes.EtcdError
	code := status.Code(err)
	if errors.As(err, &answer) {
		code = answer.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.NotFound, codes.Unimplemented,
		codes.FailedPrecondition, codes.OutOfRange, codes.AlreadyExists:
		return false
	}
	return !errors.Is(err, context.Canceled)
}
