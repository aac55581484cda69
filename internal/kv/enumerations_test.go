package kv_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
)

// enumerations has the values that this build knows of each type of which a later build may know more.
var enumerations = map[reflect.Type][]uint64{
	reflect.TypeFor[auth.Kind]():        upTo(1, 14),
	reflect.TypeFor[auth.Access]():      upTo(0, 2),
	reflect.TypeFor[kv.AlarmKind]():     upTo(0, 2),
	reflect.TypeFor[level.PolicyKind](): upTo(0, 3),
	reflect.TypeFor[kv.AuditKind]():     upTo(1, 2),
	reflect.TypeFor[kv.BackupKind]():    upTo(1, 6),
	reflect.TypeFor[kv.SortOrder]():     upTo(0, 2),
	reflect.TypeFor[kv.SortTarget]():    upTo(0, 4),
	reflect.TypeFor[kv.CompareTarget](): append(upTo(0, 4), 255),
	reflect.TypeFor[kv.CompareResult](): append(upTo(0, 3), 255),
}

// numbers are types whose values are no enumeration: a member publishes, and raises, a level that earlier builds read.
var numbers = map[reflect.Type]bool{reflect.TypeFor[level.Level](): true, reflect.TypeFor[kv.LeaseID](): true,
	reflect.TypeFor[kv.Revision](): true}

func upTo(first, last uint64) (all []uint64) {
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

// place is a way from a Command to a field.
type place struct {
	name string
	of   reflect.Type
	set  func(c *kv.Command, value uint64)
}

// places returns every field of a Command with a named integer type. It fails for a type that is in neither table above.
func places(t *testing.T) (all []place) {
	t.Helper()
	const deepest = 2 // transactions within transactions
	var walk func(name string, of reflect.Type, depth int, reach func(c *kv.Command) reflect.Value)
	walk = func(name string, of reflect.Type, depth int, reach func(c *kv.Command) reflect.Value) {
		switch of.Kind() {
		case reflect.Pointer:
			if of == reflect.TypeFor[*kv.TxnOp]() {
				if depth++; depth > deepest {
					return
				}
			}
			walk(name, of.Elem(), depth, func(c *kv.Command) reflect.Value {
				v := reach(c)
				if v.IsNil() {
					v.Set(reflect.New(of.Elem()))
				}
				return v.Elem()
			})
		case reflect.Slice:
			walk(name+"[0]", of.Elem(), depth, func(c *kv.Command) reflect.Value {
				v := reach(c)
				if v.Len() == 0 {
					v.Set(reflect.MakeSlice(of, 1, 1))
				}
				return v.Index(0)
			})
		case reflect.Struct:
			for i := range of.NumField() {
				walk(name+"."+of.Field(i).Name, of.Field(i).Type, depth, func(c *kv.Command) reflect.Value { return reach(c).Field(i) })
			}
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16,
			reflect.Uint32, reflect.Uint64:
			if of.PkgPath() == "" || numbers[of] {
				return
			}
			if enumerations[of] == nil {
				t.Fatalf("%s has type %v: give its values to the table of enumerations, and refuse others (docs/formats.md)", name, of)
			}
			all = append(all, place{name, of, func(c *kv.Command, value uint64) { reach(c).SetUint(value) }})
		}
	}
	walk("Command", reflect.TypeFor[kv.Command](), 0, func(c *kv.Command) reflect.Value { return reflect.ValueOf(c).Elem() })
	return all
}

// around returns a command in which the field at a place has a value, and all else that its encoding needs.
func around(p *place, value uint64) kv.Command {
	c := kv.Command{}
	if strings.HasPrefix(p.name, "Command.Auth") {
		c.Auth = &auth.Change{Kind: auth.UserAdd, User: "u"}
	}
	p.set(&c, value)
	return c
}

// Ensure that every enumeration inside a command is closed: with a value that only a later build knows the command is not
// proposed, and an entry with it is no command that changes nothing, but one that stops the member. The values that this build
// knows pass.
func TestCommand_Check_enumerations(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, p := range places(t) {
		seen[p.of] = true
		known := map[uint64]bool{}
		for _, value := range enumerations[p.of] {
			known[value] = true
		}
		for value := range uint64(256) {
			c := around(&p, value)
			name := fmt.Sprintf("%s = %d", p.name, value)
			payload := c.Append(nil)
			_, decoded := kv.DecodeCommand(payload)
			_, judged := kv.Needs(payload)
			if kv.Readable(payload) != (decoded == nil) {
				t.Errorf("%s decodes with %v, and is readable: %t", name, decoded, decoded != nil)
			}
			switch checked := c.Check(); {
			case known[value] && (checked != nil || errors.Is(decoded, level.ErrLater) || !judged):
				t.Errorf("%s: it is refused with %v, decodes with %v, and is known: %t", name, checked, decoded, judged)
			case !known[value] && !errors.Is(checked, level.ErrLater) && !(value == 0 && decoded != nil):
				t.Errorf("%s may be proposed: %v", name, checked)
			case !known[value] && !errors.Is(decoded, level.ErrLater) && !(value == 0 && errors.Is(decoded, kv.ErrBadCommand)):
				t.Errorf("%s: a command of a later build decodes with %v", name, decoded)
			}
		}
	}
	for of := range enumerations {
		if !seen[of] {
			t.Errorf("no command has a field of type %v", of)
		}
	}
}

// Ensure that a kind of what a command changes has a level of its own: kv.Needs does not know one that this build does not have.
// It says the same as the decoder, which tells a later build's kind from damage.
func TestNeeds_kinds(t *testing.T) {
	for name, row := range map[string]struct {
		command func(kind int) kv.Command
		known   []uint64
	}{
		"a change of users": {func(k int) kv.Command { return kv.Command{Auth: &auth.Change{Kind: auth.Kind(k)}} },
			enumerations[reflect.TypeFor[auth.Kind]()]},
		"an alarm": {func(k int) kv.Command { return kv.Command{Alarm: &kv.AlarmOp{Kind: kv.AlarmKind(k)}} },
			enumerations[reflect.TypeFor[kv.AlarmKind]()]},
		"a policy": {func(k int) kv.Command {
			return kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicyKind(k)}}}
		}, enumerations[reflect.TypeFor[level.PolicyKind]()]},
		"an audit": {func(k int) kv.Command { return kv.Command{Audit: &kv.AuditOp{Kind: kv.AuditKind(k)}} },
			enumerations[reflect.TypeFor[kv.AuditKind]()]},
		"a backup": {func(k int) kv.Command { return kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupKind(k)}} },
			enumerations[reflect.TypeFor[kv.BackupKind]()]},
	} {
		least := level.First
		if name == "an audit" || name == "a backup" {
			least = level.Second
		}
		for kind := range 256 {
			c := row.command(kind)
			want := false
			for _, known := range row.known {
				want = want || known == uint64(kind)
			}
			_, decoded := kv.DecodeCommand(c.Append(nil))
			damaged := !want && !errors.Is(decoded, level.ErrLater) && errors.Is(decoded, kv.ErrBadCommand)
			if needs, known := kv.Needs(c.Append(nil)); known != (want || damaged) || known && needs != least {
				t.Errorf("%s of kind %d needs level %d, known: %t, and decodes with %v", name, kind, needs, known, decoded)
			}
		}
	}
}

// Ensure that the head of a command says which level it needs as the whole does, with credentials too, and that an unchecked
// transaction has one.
func TestCommand_Head(t *testing.T) {
	for name, c := range commands() {
		for _, by := range []auth.Credentials{{}, {User: "alice", Revision: 3}} {
			c.By = by
			want, known := kv.Needs(c.Append(nil))
			if needs, ok := kv.Needs(c.Head()); needs != want || ok != known {
				t.Errorf("%s: the head needs level %d, %t, the whole %d, %t", name, needs, ok, want, known)
			}
		}
	}
	unchecked := kv.Command{Txn: &kv.TxnOp{Then: make([]kv.Op, 1)}}
	if needs, known := kv.Needs(unchecked.Head()); needs != level.First || !known {
		t.Errorf("an unchecked transaction needs level %d, %t", needs, known)
	}
}
