package documents

import (
	"bytes"
	"html/template"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	pagePath = "/docs/"
	index    = "README.md" // of a directory
)

// markdown renders without raw HTML, which is the library's default. It aligns cells by an attribute: the policy of the console
// forbids the style that it would write otherwise.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(frames{}, 100))),
)

// render makes the body of a page of a document that lies at a path of package docs, without its title. exists says which paths
// there are.
func render(name string, source []byte, exists func(string) bool) (template.HTML, error) {
	tree := markdown.Parser().Parse(text.NewReader(source))
	var links, images, comments []ast.Node
	var titled *ast.Heading
	anchors := anchors{}
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if anchor := anchors.next(plain(n, source)); n.Level == 1 && titled == nil {
				titled = n
			} else {
				n.SetAttributeString("id", []byte(anchor))
			}
		case *ast.Link:
			links = append(links, n)
		case *ast.Image:
			images = append(images, n)
		case *ast.HTMLBlock:
			if n.HTMLBlockType == ast.HTMLBlockType2 {
				comments = append(comments, n)
			}
		case *extast.TableHeader:
			for cell := n.FirstChild(); cell != nil; cell = cell.NextSibling() {
				cell.SetAttributeString("scope", []byte("col"))
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return "", err
	}
	if titled != nil { // the page has it
		titled.Parent().RemoveChild(titled.Parent(), titled)
	}
	for _, n := range comments {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	for _, n := range links {
		lead(n.(*ast.Link), name, source, exists)
	}
	for _, n := range images {
		image := n.(*ast.Image)
		if to, ok := target(name, string(image.Destination), exists); ok {
			image.Destination = []byte(to)
			continue
		}
		remove(n) // the build has no such picture: those of the console are before the reader
	}
	var out bytes.Buffer
	err = markdown.Renderer().Render(&out, source, tree)
	return template.HTML(out.String()), err // #nosec: rendered without raw HTML, from a file of the build
}

// remove takes out a node, and its paragraph if that has nothing else.
func remove(n ast.Node) {
	parent := n.Parent()
	parent.RemoveChild(parent, n)
	if parent.ChildCount() == 0 && parent.Kind() == ast.KindParagraph {
		parent.Parent().RemoveChild(parent.Parent(), parent)
	}
}

// lead makes a link lead to where it can from a page of the console. A link to a file that is not served becomes its text,
// with the path of the file if the text does not say it.
func lead(n *ast.Link, name string, source []byte, exists func(string) bool) {
	if to, ok := target(name, string(n.Destination), exists); ok {
		n.Destination = []byte(to)
		return
	}
	parent, words := n.Parent(), plain(n, source)
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		n.RemoveChild(n, child)
		parent.InsertBefore(parent, n, child)
	}
	file := "." // of no file of the source
	if u, err := url.Parse(string(n.Destination)); err == nil && u.Scheme == "" && u.Host == "" {
		file = u.Path
	}
	here := path.Join("docs", path.Dir(name))
	file = strings.TrimPrefix(path.Join(here, file), "../")
	if file != here && !strings.Contains(words, path.Base(file)) {
		parent.InsertBefore(parent, n, ast.NewString([]byte(" ("+file+" in the source)")))
	}
	parent.RemoveChild(parent, n)
}

// target is where a link of a document leads on the console; false: it leads to a file that is not served.
func target(name, destination string, exists func(string) bool) (string, bool) {
	u, err := url.Parse(destination)
	switch {
	case err != nil:
		return "", false
	case u.Scheme == "https" || u.Scheme == "http" || u.Scheme == "mailto":
		return destination, true
	case u.Scheme != "" || u.Host != "":
		return "", false
	case u.Path == "":
		return destination, true
	}
	file := path.Join(path.Dir(name), u.Path)
	if file == "adr" || file == "." {
		file = path.Join(file, index)
	}
	if !exists(file) {
		return "", false
	}
	to := pagePath + file
	if u.Fragment != "" {
		to += "#" + u.Fragment
	}
	return to, true
}

// plain is the text of a node.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if t, ok := n.(*ast.Text); ok && entering {
			out.Write(util.UnescapePunctuations(t.Segment.Value(source)))
			if t.SoftLineBreak() {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// anchors are those of a document, with how often each was asked for.
type anchors map[string]int

// unnamed is what an anchor leaves out of its heading.
var unnamed = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)

// next is the anchor of a heading, by the rule that links in the documents assume.
func (a anchors) next(words string) string {
	anchor := strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(words), ""), " ", "-")
	a[anchor]++
	if n := a[anchor] - 1; n > 0 {
		return anchor + "-" + strconv.Itoa(n)
	}
	return anchor
}

// frames renders what is wider than a page so that it can be scrolled by itself, also by keys.
type frames struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (frames) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(extast.KindTable, framed(`<div class="scroll"><table>`, "</table></div>\n"))
}

func framed(before, after string) renderer.NodeRendererFunc {
	return func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		_, err := w.WriteString(map[bool]string{true: before, false: after}[entering])
		return ast.WalkContinue, err
	}
}
