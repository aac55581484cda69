package etcdlog

import "google.golang.org/protobuf/encoding/protowire"

// number returns a numeric field of a message, zero if it has none or is none.
func number(message []byte, field protowire.Number) (found uint64) {
	eachField(message, func(number protowire.Number, wire protowire.Type, value []byte) {
		if number == field && wire == protowire.VarintType {
			found, _ = protowire.ConsumeVarint(value)
		}
	})
	return found
}

// bytesField returns a field of bytes.
func bytesField(message []byte, field protowire.Number) (found []byte) {
	eachField(message, func(number protowire.Number, wire protowire.Type, value []byte) {
		if number == field && wire == protowire.BytesType {
			found, _ = protowire.ConsumeBytes(value)
		}
	})
	return found
}

func eachField(message []byte, visit func(number protowire.Number, wire protowire.Type, value []byte)) {
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, wire, message); n < 0 {
			return
		}
		visit(number, wire, message[:n])
		message = message[n:]
	}
}
