package keys

import (
	"bytes"
	"context"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/quorate/quorate/internal/console/page"
)

const errNoRevision = page.FormError("The form does not say on which revision it is based. Nothing was changed: open " +
	"the form again.")

// said is the outcome of a write of a key.
func said(key []byte, done string, answer *pb.TxnResponse) page.Outcome {
	revision := number(answer.GetHeader().GetRevision())
	return page.Outcome{To: toKey("/keys/key", key), Said: done + " at revision " + revision + "."}
}

// confirmed refuses a form in which something else was typed than what is to be changed.
func confirmed(typed string, key []byte, what string) error {
	if typed == "" {
		return page.FormError("Type " + what + " to confirm. Nothing was changed.")
	}
	got, err := keyOf(typed)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, key) {
		return page.FormError("What was typed is not " + what + ". Nothing was changed.")
	}
	return nil
}

// editView is a form for a value.
type editView struct {
	Name        string // of the key, in the form
	Short       string
	Text        string
	ModRevision int64
	Version     int64
	Lease       int64
	Returns     bool // lines end with carriage return and line feed
	Why         string
	Gone        bool
	Admin       bool
	Back        string
}

// editForm shows the value in a form.
func editForm(ctx context.Context, r *page.Request) (any, error) {
	key, kv, v, err := formOf(ctx, r)
	if err != nil || v.Gone {
		return v, err
	}
	if v.Why = whyFixed(kv.GetValue()); v.Why == "" {
		v.Text, v.Returns = string(kv.GetValue()), bytes.Contains(kv.GetValue(), []byte("\r\n"))
	}
	v.Back = toKey("/keys/key", key)
	return v, nil
}

// formOf reads the key of a form, as all acknowledged writes have left it.
func formOf(ctx context.Context, r *page.Request) (key []byte, kv *mvccpb.KeyValue, v *editView, err error) {
	if key, err = keyIn(r.Query); err != nil {
		return nil, nil, nil, err
	}
	v = &editView{Name: nameOf(key), Short: short(key), Admin: r.Admin, Back: toKey("/keys/key", key)}
	answer, err := versionAt(ctx, r, key, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	if list := answer.GetVersions(); len(list) > 0 && list[0].GetSize() > mostLoaded {
		return key, &mvccpb.KeyValue{Key: key, ModRevision: list[0].GetModRevision(), Value: make([]byte, mostEdited+1)},
			v.of(list[0].GetModRevision(), list[0].GetVersion(), list[0].GetLease()), nil
	}
	if kv, err = current(ctx, r, key); err != nil {
		return nil, nil, nil, err
	}
	if kv == nil {
		v.Gone = true
		return key, nil, v, nil
	}
	return key, kv, v.of(kv.GetModRevision(), kv.GetVersion(), kv.GetLease()), nil
}

func (v *editView) of(mod, version, lease int64) *editView {
	v.ModRevision, v.Version, v.Lease = mod, version, lease
	return v
}

// conflictView tells that a key is not any more as the form says, and what was to be written.
type conflictView struct {
	Name, Short string
	Gone        bool
	Exists      bool  // it was to be created, and exists
	Based       int64 // revision of the form
	ModRevision int64 // now
	Lines       comparison
	Bytes       bool // the value now is no text
	Text        string
	Fixed       string // why the value now cannot be edited
	Lease       int64
	Again       string // link to start over
	Key         string
}

// edit writes a value if the key is as the form says. The lease stays.
func edit(ctx context.Context, r *page.Request) (out page.Outcome, err error) {
	key, err := keyIn(r.Form)
	if err != nil {
		return out, err
	}
	based, err := revisionIn(r.Form, "mod")
	if err != nil || based == 0 {
		return out, errNoRevision
	}
	kv, err := current(ctx, r, key)
	if err != nil {
		return out, err
	}
	if kv.GetModRevision() != based {
		return conflict(key, kv, based, r.Form.Get("value")), nil
	}
	if why := whyFixed(kv.GetValue()); why != "" {
		return out, page.FormError("The value cannot be edited here: " + why + ". Nothing was changed.")
	}
	value, err := asSent(r.Form.Get("value"), kv.GetValue())
	if err != nil {
		return out, err
	}
	if bytes.Equal(value, kv.GetValue()) {
		return page.Outcome{To: toKey("/keys/key", key), Said: "The value is as it was: nothing was written."}, nil
	}
	answer, err := pb.NewKVClient(r.Conn).Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: based}}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: value,
			IgnoreLease: true}}}},
		Failure: []*pb.RequestOp{readOf(key)},
	})
	if err != nil {
		return out, err
	}
	if !answer.GetSucceeded() {
		return conflict(key, found(answer), based, r.Form.Get("value")), nil
	}
	return said(key, "Written", answer), nil
}

func readOf(key []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}
}

// found is the key that the other branch of a transaction has read; nil: it does not exist.
func found(answer *pb.TxnResponse) *mvccpb.KeyValue {
	for _, one := range answer.GetResponses() {
		if kvs := one.GetResponseRange().GetKvs(); len(kvs) > 0 {
			return kvs[0]
		}
	}
	return nil
}

// conflict shows how the key is now beside what was to be written. Nothing was changed.
func conflict(key []byte, kv *mvccpb.KeyValue, based int64, text string) page.Outcome {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	v := &conflictView{Name: nameOf(key), Short: short(key), Gone: kv == nil, Exists: based == 0, Based: based,
		ModRevision: kv.GetModRevision(), Lease: kv.GetLease(), Key: toKey("/keys/key", key), Again: toKey("/keys/edit", key)}
	if v.Gone {
		v.Again = toKey("/keys/new", key)
	}
	v.Text = cut(text, mostEdited)
	if kv != nil {
		v.Bytes = !isText(kv.GetValue())
		v.Fixed = whyFixed(kv.GetValue())
	}
	if kv != nil && !v.Bytes {
		v.Lines = compare(strings.ReplaceAll(string(kv.GetValue()), "\r\n", "\n"), text)
	}
	return page.Outcome{Template: "keys-conflict", Data: v}
}

// newView is a form for a key that does not exist.
type newView struct {
	Name  string
	Admin bool
	Back  string
}

// newForm shows an empty form.
func newForm(_ context.Context, r *page.Request) (any, error) {
	name := r.Query.Get("key")
	if name == "" {
		name = r.Query.Get("prefix")
	}
	if _, err := keyOf(name); err != nil {
		return nil, err
	}
	if len(name) > mostLink { // what is cut would be another key
		return nil, badf("This key is too long for a form. Write it with: quorate put")
	}
	return newView{Name: name, Admin: r.Admin, Back: "/keys"}, nil
}

// create writes a key that does not exist.
func create(ctx context.Context, r *page.Request) (out page.Outcome, err error) {
	name := r.Form.Get("key")
	if strings.TrimSpace(name) != name {
		return out, page.FormError("The key begins or ends with a space. If that is meant, write it in quotes. Nothing was " +
			"changed.")
	}
	key, err := keyIn(r.Form)
	if err != nil {
		return out, err
	}
	value, err := asSent(r.Form.Get("value"), nil)
	if err != nil {
		return out, err
	}
	answer, err := pb.NewKVClient(r.Conn).Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_CreateRevision{}}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: value}}}},
		Failure: []*pb.RequestOp{readOf(key)},
	})
	if err != nil {
		return out, err
	}
	if !answer.GetSucceeded() {
		return conflict(key, found(answer), 0, r.Form.Get("value")), nil
	}
	return said(key, "Created", answer), nil
}

// deleteForm shows what would be deleted.
func deleteForm(ctx context.Context, r *page.Request) (any, error) {
	_, _, v, err := formOf(ctx, r)
	return v, err
}

func deleteCommand(r *page.Request) string {
	key, err := keyIn(r.Query)
	if err != nil {
		return ""
	}
	return command(r, key, "del")
}

// deleteAction deletes a key if it is as the form says.
func deleteAction(ctx context.Context, r *page.Request) (out page.Outcome, err error) {
	key, err := keyIn(r.Form)
	if err != nil {
		return out, err
	}
	if err := confirmed(r.Form.Get("typed"), key, "the key"); err != nil {
		return out, err
	}
	based, err := revisionIn(r.Form, "mod")
	if err != nil || based == 0 {
		return out, errNoRevision
	}
	answer, err := pb.NewKVClient(r.Conn).Txn(ctx, &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: based}}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: key}}}},
	})
	if err != nil {
		return out, err
	}
	if !answer.GetSucceeded() {
		return out, page.FormError("The key is not any more as it was at revision " + number(based) +
			": it was written or deleted meanwhile. Nothing was changed: look at it again.")
	}
	return said(key, "Deleted", answer), nil
}
