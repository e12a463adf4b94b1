package phrases

import (
	"bytes"
	"compress/gzip"
	_ "embed" // opencc.table
	"io"
	"maps"
	"strings"
	"sync"
	"unicode/utf8"
)

// openccTable has OpenCC's tables for the conversion s2twp, as github.com/longbridgeapp/opencc
// v0.3.13 brings them (STPhrases with STCharacters, TWPhrases, TWVariants): a line for each
// word with a tab and its replacement, a form feed between the stages, compressed by gzip. The
// library itself is not used, because a package that it imports is under the GPL.
//
//go:embed opencc.table
var openccTable []byte

// traditional is the simplified catalogue in traditional Chinese as it is written in Taiwan.
// OpenCC's tables convert the characters and most words; taiwan has the words for which it
// has none, or one that means something else here. Converting all takes about 60 ms, at the
// first use of a traditional text.
var traditional = sync.OnceValue(func() map[Key]string {
	stages, words := openccStages(), strings.NewReplacer(taiwan...)
	all := make(map[Key]string, len(simplified()))
	for key, text := range simplified() {
		for _, s := range stages {
			text = s.convert(text)
		}
		all[key] = words.Replace(text)
	}
	maps.Copy(all, reworded)
	return all
})

// openccStage is one table of a conversion.
type openccStage struct {
	words   map[string]string
	longest map[rune]int // by the first rune of words: the length of the longest, in bytes
}

// openccStages returns the tables of the conversion in their order.
func openccStages() (stages []openccStage) {
	z, err := gzip.NewReader(bytes.NewReader(openccTable))
	if err != nil {
		panic(err) // it is embedded
	}
	b, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	for table := range strings.SplitSeq(string(b), "\f") {
		s := openccStage{make(map[string]string, strings.Count(table, "\n")+1), map[rune]int{}}
		for line := range strings.Lines(table) {
			word, replacement, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			first, _ := utf8.DecodeRuneInString(word)
			s.words[word], s.longest[first] = replacement, max(s.longest[first], len(word))
		}
		stages = append(stages, s)
	}
	return stages
}

// convert replaces the longest word of the table at each position of a text.
func (s openccStage) convert(text string) string {
	var out strings.Builder
next:
	for i := 0; i < len(text); {
		first, size := utf8.DecodeRuneInString(text[i:])
		for end := min(len(text), i+s.longest[first]); end > i; end-- {
			if replacement, ok := s.words[text[i:end]]; ok {
				out.WriteString(replacement)
				i = end
				continue next
			}
		}
		out.WriteString(text[i : i+size])
		i += size
	}
	return out.String()
}

// reworded are the sentences in which a word has another meaning than elsewhere.
var reworded = map[Key]string{
	"%s %% of the disk are free, %s of %s":                              "磁碟有 %s %% 可用，即 %s，共 %s",
	`it has typographic quotes (“ ”), and JSON takes straight ones (")`: `含有彎引號（“ ”），JSON 只接受直引號（"）`,
}

// taiwan are words of OpenCC's output, each followed by what replaces it: a longer word is
// before those that it contains.
var taiwan = []string{
	"在這裡退出的", "在這裡登出的", "這臺計算機", "這台電腦", "使用者組", "使用者群組", "備份計劃", "備份排程", "公共子區", "公開討論串",
	"共享一個", "分享一個", "守護程序", "常駐程式", "工具返回", "工具傳回", "已共享的", "已分享的", "後設資料", "中繼資料",
	"整理計劃", "整理排程", "斷開連線", "中斷連線", "日誌格式", "記錄格式", "日誌級別", "記錄層級", "查詢工具", "尋找工具",
	"沒有返回", "沒有傳回", "空閒超時", "閒置逾時", "結果未知", "結果不明", "返回結果", "傳回結果", "退出登入", "登出",
	"郵件地址", "郵件地址", "下劃線", "底線", "不可信", "不受信任", "不可用", "無法使用", "代理發", "代理伺服器發",
	"任何組", "任何群組", "共享給", "分享給", "命令列", "命令列", "套接字", "通訊端", "客戶端", "用戶端", "工作區", "工作空間",
	"所有者", "擁有者", "提供商", "供應商", "提供方", "提供者", "查詢並", "尋找並", "條測試", "則測試", "條訊息", "則訊息",
	"條警報", "則警報", "標籤頁", "分頁", "程式碼", "代碼", "空閒會", "閒置會", "計劃是", "排程是", "訊息列", "討論串",
	"許可權", "權限", "軟體包", "套件", "這隻供", "這只供", "連字元", "連字號", "部分組", "部分群組", "重定向", "重新導向",
	"丟棄", "捨棄", "令牌", "權杖", "任務", "工作", "倉庫", "儲存庫", "共享", "共用", "出錯", "發生錯誤", "分配", "指派",
	"列表", "清單", "協議", "協定", "吊銷", "撤銷", "命令", "指令", "地址", "位址", "型別", "類型", "始終", "一律",
	"子區", "討論串", "宣告", "聲明", "審批", "核准", "審計", "稽核", "平臺", "平台", "憑據", "憑證", "應答", "回應",
	"批准", "核准", "斷開", "中斷", "日誌", "記錄檔", "更改", "變更", "會話", "工作階段", "架構", "結構", "校驗", "驗證",
	"正文", "主體", "歸檔", "封存", "滾動", "捲動", "獲取", "取得", "生成", "產生", "當前", "目前", "發往", "傳送至",
	"的組", "的群組", " 組", " 群組", "私信", "私訊", "訪問", "存取", "認證", "驗證", "證書", "憑證", "超時", "逾時", "跟蹤", "追蹤",
	"身份", "身分", "詳情", "詳細資料", "迴環", "回送", "退出", "離開", "這臺", "這台", "運維", "維運", "配置", "設定", "響應", "回應",
	"頒發", "簽發", "高階", "進階", "“", "「", "”", "」", "賬", "帳",
}
