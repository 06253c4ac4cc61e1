package textindex

import (
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// The names of KeywordIndexes.
const (
	byPart  = "keyword_parts"
	byWhole = "keyword"
)

// separatorOfTexts stands between the texts of a document. No name or code has it, so no part reaches over it.
const separatorOfTexts = "\n"

// KeywordIndexes are the indexes of a collection whose documents HavingPart finds. texts are what people know a
// document by: its names and codes.
func KeywordIndexes[T any](texts func(*T) []string) []docstore.Index[T] {
	whole := func(v *T) string { return Fold(strings.Join(texts(v), separatorOfTexts)) }
	return []docstore.Index[T]{
		docstore.ByList(byPart, func(v *T) []string { return Grams("", whole(v)) }),
		docstore.ByText(byWhole, whole),
	}
}

// Search is the keyword of a filter, and of the query of the operation that lists by it.
type Search struct {
	Keyword string `query:"keyword" maxLength:"256" doc:"A part of a name or code, without regard to case, accents and width" example:"研发"`
}

// HavingPart selects the documents of which one text contains the keyword, without regard to case, accents, width and
// outer spaces. An empty keyword selects all documents. The collection must have KeywordIndexes.
func HavingPart(keyword string) docstore.Filter {
	keyword = strings.TrimSpace(keyword)
	if keyword == "" {
		return docstore.Filter{}
	}
	part := Fold(keyword)
	if part == "" || strings.Contains(part, separatorOfTexts) {
		return docstore.Or() // accents alone, or more than one text
	}
	return Containing(byPart, byWhole, "", part)
}
