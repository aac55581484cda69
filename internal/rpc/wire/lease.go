package wire

import "github.com/quorate/quorate/internal/kv"

// KeepAliveCall is LeaseKeepAliveRequest: ID=1.
type KeepAliveCall struct{ ID kv.LeaseID }

// DecodeWire implements Decoder.
func (c *KeepAliveCall) DecodeWire(src []byte) error {
	for len(src) > 0 {
		f, rest, err := readField(src)
		if err != nil {
			return err
		}
		src = rest
		if f.number == 1 && f.isVarint() {
			c.ID = kv.LeaseID(f.varint)
		}
	}
	return nil
}

// KeepAliveResponse is LeaseKeepAliveResponse: header=1 ID=2 TTL=3.
type KeepAliveResponse struct {
	Header     Header
	ID         kv.LeaseID
	TTLSeconds int64
}

// SizeWire implements Encoder.
func (r *KeepAliveResponse) SizeWire() int {
	return SizeMessage(r.Header.SizeWire()) + sizeUint(uint64(r.ID)) + sizeUint(uint64(r.TTLSeconds))
}

// AppendWire implements Encoder.
func (r *KeepAliveResponse) AppendWire(dst []byte) []byte {
	dst = r.Header.AppendWire(appendLength(dst, 1, r.Header.SizeWire()))
	dst = appendUint(dst, 2, uint64(r.ID))
	return appendUint(dst, 3, uint64(r.TTLSeconds))
}

// LeasesResponse is LeaseLeasesResponse: header=1 leases=2, each of them ID=1.
type LeasesResponse struct {
	Memory kv.Account
	Header Header
	IDs    []kv.LeaseID
}

// SizeWire implements Encoder.
func (r *LeasesResponse) SizeWire() int {
	size := SizeMessage(r.Header.SizeWire())
	for _, id := range r.IDs {
		size += SizeMessage(sizeUint(uint64(id)))
	}
	return size
}

// AppendWire implements Encoder.
func (r *LeasesResponse) AppendWire(dst []byte) []byte {
	dst = r.Header.AppendWire(appendLength(dst, 1, r.Header.SizeWire()))
	for _, id := range r.IDs {
		dst = appendUint(appendLength(dst, 2, sizeUint(uint64(id))), 1, uint64(id))
	}
	return dst
}

// Account implements accounted.
func (r *LeasesResponse) Account() kv.Account { return r.Memory }

// TimeToLiveResponse is LeaseTimeToLiveResponse: header=1 ID=2 TTL=3 grantedTTL=4 keys=5.
type TimeToLiveResponse struct {
	Memory            kv.Account
	Header            Header
	ID                kv.LeaseID
	TTLSeconds        int64
	GrantedTTLSeconds int64
	Keys              []string
}

// SizeWire implements Encoder.
func (r *TimeToLiveResponse) SizeWire() int {
	size := SizeMessage(r.Header.SizeWire()) + sizeUint(uint64(r.ID)) + sizeUint(uint64(r.TTLSeconds)) +
		sizeUint(uint64(r.GrantedTTLSeconds))
	for _, key := range r.Keys {
		size += SizeMessage(len(key))
	}
	return size
}

// AppendWire implements Encoder.
func (r *TimeToLiveResponse) AppendWire(dst []byte) []byte {
	dst = r.Header.AppendWire(appendLength(dst, 1, r.Header.SizeWire()))
	dst = appendUint(dst, 2, uint64(r.ID))
	dst = appendUint(dst, 3, uint64(r.TTLSeconds))
	dst = appendUint(dst, 4, uint64(r.GrantedTTLSeconds))
	for _, key := range r.Keys {
		dst = append(appendLength(dst, 5, len(key)), key...)
	}
	return dst
}

// Account implements accounted.
func (r *TimeToLiveResponse) Account() kv.Account { return r.Memory }
