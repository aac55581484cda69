package gateway

import (
	"encoding/json"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
	"github.com/quorate/quorate/internal/base/invariant"
)

// object is a JSON object; encoding sorts its names, so that the document is the same each time.
type object = map[string]any

// OpenAPI returns the description of all paths as an OpenAPI 3.0.3 document in JSON. It is made from the same descriptors as
// the handlers.
func OpenAPI() []byte {
	d := &document{paths: object{}, schemas: object{}}
	for _, file := range []protoreflect.FileDescriptor{
		pb.File_rpc_proto, v3lockpb.File_v3lockpb_lock_proto, v3electionpb.File_v3electionpb_election_proto,
	} {
		services := file.Services()
		for i := range services.Len() {
			methods := services.Get(i).Methods()
			for j := range methods.Len() {
				d.addMethod(methods.Get(j))
			}
		}
	}
	encoded, err := json.MarshalIndent(object{
		"openapi": "3.0.3",
		"info": object{
			"title": "etcd v3 API as JSON", "version": "3.7",
			"description": "64-bit integers are strings, bytes are base64. An answer that is a stream is one JSON " +
				"object in a line for each message. Requests bear the token of /v3/auth/authenticate in the header " +
				"Authorization.",
		},
		"paths": d.paths,
		"components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"token": object{"type": "apiKey", "in": "header", "name": "Authorization"}},
		},
		"security": []object{{"token": []string{}}, {}},
	}, "", " ")
	invariant.True(err == nil, "the OpenAPI document cannot be encoded: %v", err)
	return encoded
}

// document is one that is being made.
type document struct{ paths, schemas object }

func (d *document) addMethod(m protoreflect.MethodDescriptor) {
	answer := object{"$ref": d.schemaOf(m.Output())}
	if m.IsStreamingServer() {
		answer = object{"type": "object", "properties": object{"result": answer, "error": object{"$ref": d.status()}}}
	}
	for _, path := range pathsOf(m) {
		d.paths[path] = object{"post": object{
			"operationId": strings.NewReplacer("/", "_", "-", "_").Replace(strings.TrimPrefix(path, "/v3/")),
			"tags":        []string{string(m.Parent().Name())},
			"summary":     string(m.FullName()),
			"requestBody": object{"required": true, "content": jsonOf(object{"$ref": d.schemaOf(m.Input())})},
			"responses": object{
				"200":     object{"description": "the answer", "content": jsonOf(answer)},
				"default": object{"description": "an error", "content": jsonOf(object{"$ref": d.status()})},
			},
		}}
	}
}

func jsonOf(schema object) object { return object{"application/json": object{"schema": schema}} }

// pathsOf are the paths of a method: those that etcd's API names, or those of gateway.yaml beside our own.
func pathsOf(m protoreflect.MethodDescriptor) []string {
	switch m.Parent().FullName() {
	case "v3lockpb.Lock":
		return []string{"/v3/lock/" + strings.ToLower(string(m.Name()))}
	case "v3electionpb.Election":
		return []string{"/v3/election/" + strings.ToLower(string(m.Name()))}
	}
	rule, _ := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
	if rule.GetPost() == "" {
		return nil // RangeStream is for gRPC alone
	}
	paths := []string{rule.GetPost()}
	for _, more := range rule.GetAdditionalBindings() {
		paths = append(paths, more.GetPost())
	}
	return paths
}

// status is the schema of errors.
func (d *document) status() string {
	d.schemas["Status"] = object{"type": "object", "properties": object{
		"code":    object{"type": "integer", "format": "int32", "description": "gRPC's"},
		"message": object{"type": "string"},
	}}
	return "#/components/schemas/Status"
}

// schemaOf describes a message, once, and returns where.
func (d *document) schemaOf(m protoreflect.MessageDescriptor) string {
	name := string(m.FullName())
	if _, described := d.schemas[name]; !described {
		properties := object{}
		d.schemas[name] = object{"type": "object", "properties": properties} // first: messages contain themselves
		fields := m.Fields()
		for i := range fields.Len() {
			properties[string(fields.Get(i).Name())] = d.field(fields.Get(i))
		}
	}
	return "#/components/schemas/" + name
}

func (d *document) field(f protoreflect.FieldDescriptor) object {
	var one object
	switch f.Kind() {
	case protoreflect.MessageKind:
		one = object{"$ref": d.schemaOf(f.Message())}
	case protoreflect.EnumKind:
		one = object{"type": "string", "enum": namesOf(f.Enum())}
	case protoreflect.BoolKind:
		one = object{"type": "boolean"}
	case protoreflect.BytesKind:
		one = object{"type": "string", "format": "byte"}
	case protoreflect.StringKind:
		one = object{"type": "string"}
	case protoreflect.Int64Kind, protoreflect.Uint64Kind:
		one = object{"type": "string", "format": f.Kind().String()}
	default:
		one = object{"type": "integer", "format": f.Kind().String()}
	}
	if f.IsList() {
		return object{"type": "array", "items": one}
	}
	return one
}

func namesOf(e protoreflect.EnumDescriptor) []string {
	values := e.Values()
	names := make([]string, values.Len())
	for i := range names {
		names[i] = string(values.Get(i).Name())
	}
	return names
}
