package phrases

// withPlaces adds the words of the page's places and of tools' views, in one of their two forms.
func withPlaces(form int, all map[Key]string) map[Key]string {
	for _, list := range []map[Key][2]string{places, chats, views} {
		for key, forms := range list {
			all[key] = forms[form]
		}
	}
	return all
}

// places are the words of the places of the page besides conversations, in simplified
// and in traditional Chinese.
var places = map[Key][2]string{
	"Settings":               {"设置", "設定"},
	"Usage":                  {"用量", "用量"},
	"Your own":               {"你自己的", "你自己的"},
	"Set for everybody":      {"为所有人设置的", "為所有人設定的"},
	"Default":                {"默认", "預設"},
	"Default: {value}":       {"默认：{value}", "預設：{value}"},
	"For everybody: {value}": {"对所有人：{value}", "對所有人：{value}"},
	"Use that":               {"使用它", "使用它"},
	"Save":                   {"保存", "儲存"},
	"Saved.":                 {"已保存。", "已儲存。"},
	"on":                     {"开", "開"},
	"off":                    {"关", "關"},
	"automatic":              {"自动", "自動"},
	"light":                  {"浅色", "淺色"},
	"dark":                   {"深色", "深色"},
	"empty":                  {"空", "空"},
	"The most that is allowed here is {value}.": {"这里允许的上限是 {value}。", "這裡允許的上限是 {value}。"},
	"By day":            {"按日", "按日"},
	"Nothing was used.": {"没有用量。", "沒有用量。"},
	"Day":               {"日期", "日期"},
	"Tokens":            {"令牌数", "權杖數"},
	"Cost":              {"费用", "費用"},
	"Theme":             {"主题", "主題"},
	"the page in the browser is light or dark; auto is as the browser's system is": {"浏览器页面是浅色还是深色；auto 表示跟随系统", "瀏覽器頁面是淺色還是深色；auto 表示跟隨系統"},
}
