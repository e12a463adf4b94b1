package phrases

// page are the words of the page as a whole, and of its empty states, in simplified and
// in traditional Chinese.
var page = map[Key][2]string{
	"Today":       {"今天", "今天"},
	"Yesterday":   {"昨天", "昨天"},
	"Last 7 days": {"过去 7 天", "過去 7 天"},
	"Older":       {"更早", "更早"},
	"Suggestions": {"建议", "建議"},
	"No tool is there yet. Add a server: {command}":                   {"还没有工具。请添加服务器：{command}", "還沒有工具。請新增伺服器：{command}"},
	"No tool is shared with you yet. Ask an admin to share a server.": {"还没有工具共享给你。请管理员共享一个服务器。", "還沒有工具分享給你。請管理員分享一個伺服器。"},
	"No language model is set up, so a simple planner answers.":       {"还没有设置语言模型，因此由简单的规划器回答。", "還沒有設定語言模型，因此由簡單的規劃器回答。"},
	"Add a provider":                          {"添加提供商", "新增供應商"},
	"An admin runs {command}":                 {"管理员运行 {command}", "管理員執行 {command}"},
	"Continue":                                {"继续", "繼續"},
	"Continue here":                           {"在这里继续", "在這裡繼續"},
	"Go on where you stopped.":                {"请从停下的地方继续。", "請從停下的地方繼續。"},
	"This conversation is held on {surface}.": {"这个对话在 {surface} 上进行。", "這個對話在 {surface} 上進行。"},
	"Edit and run again":                      {"修改后重新运行", "修改後重新執行"},
	"Ask again, in a new conversation":        {"在新对话中重新提问", "在新對話中重新提問"},
	"Your message":                            {"你的消息", "你的訊息"},
	"A new conversation begins here with what was said before. This one stays as it is.": {"会从这里开始一个新对话，并带上之前的内容。这个对话保持不变。", "會從這裡開始一個新對話，並帶上之前的內容。這個對話保持不變。"},
	"Run again": {"重新运行", "重新執行"},
	"The model can’t see pictures: it is told the name only.":               {"模型看不到图片：只会告诉它文件名。", "模型看不到圖片：只會告訴它檔名。"},
	"nize is still answering there; stop it, or wait until it has answered": {"nize 还在那里回答；请停止它，或等它回答完", "nize 還在那裡回答；請停止它，或等它回答完"},
	"message %q not found": {"找不到消息 %q", "找不到訊息 %q"},
}
