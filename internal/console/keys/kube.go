package keys

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// kubeMagic begins the values of a Kubernetes API server: the rest is a runtime.Unknown, whose raw field is the object. All
// objects have their metadata in field 1.
var kubeMagic = []byte("k8s\x00")

// Numbers of fields in runtime.Unknown, runtime.TypeMeta and meta.ObjectMeta.
const (
	unknownType, unknownRaw, unknownEncoding, unknownContent      = 1, 2, 3, 4
	typeVersion, typeKind                                         = 1, 2
	objectMeta                                                    = 1
	metaName, metaNamespace, metaUID, metaGeneration, metaCreated = 1, 3, 5, 7, 8
	metaDeleted, metaLabels, metaOwners, metaFinalizers           = 9, 11, 13, 14
	labelKey, labelValue                                          = 1, 2
	ownerKind, ownerName                                          = 1, 3
	timeSeconds                                                   = 1
	mostFields                                                    = 4096 // of one message that are looked at
	mostFacts                                                     = 48
)

// fact is a row of what an object says about itself.
type fact struct{ Name, Value string }

// field is one field of a message: bytes, or a number.
type field struct {
	bytes  []byte
	number uint64
}

// fields calls visit with the fields of a message in their order, until one is broken or too many were seen.
func fields(message []byte, visit func(number protowire.Number, f field)) {
	for seen := 0; len(message) > 0 && seen < mostFields; seen++ {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		var f field
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return
		}
		message = message[n:]
		visit(number, f)
	}
}

// factsOf reads what a Kubernetes object says about itself. A message that is broken gives what comes before the fault.
func factsOf(value []byte) (facts []fact) {
	add := func(name, text string) {
		if text != "" && len(facts) < mostFacts {
			facts = append(facts, fact{name, visible(cut(text, 4*mostShown))})
		}
	}
	var raw []byte
	fields(value[len(kubeMagic):], func(number protowire.Number, f field) {
		switch number {
		case unknownType:
			fields(f.bytes, func(number protowire.Number, f field) {
				switch number {
				case typeVersion:
					add("apiVersion", string(f.bytes))
				case typeKind:
					add("kind", string(f.bytes))
				}
			})
		case unknownRaw:
			raw = f.bytes
		case unknownEncoding:
			add("encoding", string(f.bytes))
		case unknownContent:
			add("type", string(f.bytes))
		}
	})
	first := true
	fields(raw, func(number protowire.Number, f field) {
		if number == objectMeta && first {
			first = false
			metadata(f.bytes, add)
		}
	})
	return facts
}

// metadata reads an ObjectMeta.
func metadata(message []byte, add func(name, text string)) {
	fields(message, func(number protowire.Number, f field) {
		switch number {
		case metaName:
			add("name", string(f.bytes))
		case metaNamespace:
			add("namespace", string(f.bytes))
		case metaUID:
			add("uid", string(f.bytes))
		case metaGeneration:
			add("generation", strconv.FormatUint(f.number, 10))
		case metaCreated:
			add("created", momentOf(f.bytes))
		case metaDeleted:
			add("to be deleted", momentOf(f.bytes))
		case metaLabels:
			key, value := pairOf(f.bytes, labelKey, labelValue)
			add("label", key+"="+value)
		case metaOwners:
			kind, name := pairOf(f.bytes, ownerKind, ownerName)
			add("owner", kind+" "+name)
		case metaFinalizers:
			add("finalizer", string(f.bytes))
		}
	})
}

func pairOf(message []byte, one, other protowire.Number) (a, b string) {
	fields(message, func(number protowire.Number, f field) {
		switch number {
		case one:
			a = string(f.bytes)
		case other:
			b = string(f.bytes)
		}
	})
	return a, b
}

// momentOf is a meta.Time.
func momentOf(message []byte) (text string) {
	fields(message, func(number protowire.Number, f field) {
		if number == timeSeconds {
			text = time.Unix(int64(f.number), 0).UTC().Format("2006-01-02 15:04:05Z")
		}
	})
	return text
}
